// Tensor -> pointer, with the checks that memory safety needs. The public Python functions check the same and more,
// and raise ValueError with a kinder text; these guard a direct call of torch.ops.dspark.*.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <optional>

#include "common/params.h"

namespace dspark {

using Tensor = torch::stable::Tensor;
using OptTensor = std::optional<Tensor>;
using torch::headeronly::ScalarType;

inline void require(const Tensor& t, const char* name, ScalarType dtype, int64_t numel) {
  STD_TORCH_CHECK(t.scalar_type() == dtype, name, ": unexpected dtype");
  STD_TORCH_CHECK(t.numel() == numel, name, ": expected ", numel, " elements, got ", t.numel());
  STD_TORCH_CHECK(t.is_contiguous(), name, ": must be contiguous");
}

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> { static constexpr ScalarType value = ScalarType::Float; };
template <>
struct TypeOf<int32_t> { static constexpr ScalarType value = ScalarType::Int; };
template <>
struct TypeOf<int64_t> { static constexpr ScalarType value = ScalarType::Long; };
template <>
struct TypeOf<bool> { static constexpr ScalarType value = ScalarType::Bool; };

template <class T>
const T* input(const Tensor& t, const char* name, int64_t numel) {
  require(t, name, TypeOf<T>::value, numel);
  return static_cast<const T*>(t.data_ptr());
}
template <class T>
const T* input(const OptTensor& t, const char* name, int64_t numel) {
  return t ? input<T>(*t, name, numel) : nullptr;
}
template <class T>
T* output(const Tensor& t, const char* name, int64_t numel) {
  require(t, name, TypeOf<T>::value, numel);
  return static_cast<T*>(t.data_ptr());
}
template <class T>
T* output(const OptTensor& t, const char* name, int64_t numel) {
  return t ? output<T>(*t, name, numel) : nullptr;
}

inline Index index_input(const Tensor& t, const char* name, int64_t numel) {
  const bool is_int64 = t.scalar_type() == ScalarType::Long;
  require(t, name, is_int64 ? ScalarType::Long : ScalarType::Int, numel);
  return {t.data_ptr(), is_int64};
}
inline Index index_input(const OptTensor& t, const char* name, int64_t numel) {
  return t ? index_input(*t, name, numel) : Index{nullptr, false};
}

inline IndexOut index_output(const Tensor& t, const char* name, int64_t numel) {
  const Index index = index_input(t, name, numel);
  return {const_cast<void*>(index.data), index.is_int64};
}

// Memory moved as bytes: any dtype, the same one on both sides.
inline uint8_t* bytes_of(const Tensor& t, const char* name, ScalarType dtype, int64_t numel) {
  require(t, name, dtype, numel);
  return static_cast<uint8_t*>(t.data_ptr());
}

// Registers a kernel: Bind turns the dispatcher's arguments into the operator's parameters, Kernel runs on them.
template <auto Bind, auto Kernel, class = decltype(Bind)>
struct Operator;
template <auto Bind, auto Kernel, class P, class... A>
struct Operator<Bind, Kernel, P (*)(A...)> {
  static void call(A... args) { Kernel(Bind(args...)); }
};

}  // namespace dspark
