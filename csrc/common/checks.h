// Tensor -> pointer, with every check that needs no tensor values. dspark_ops/_checks.py states the same rules with a
// kinder text: the public functions fall back to it when one of these fails.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <optional>
#include <vector>

#include "common/params.h"

namespace dspark {

using Tensor = torch::stable::Tensor;
using OptTensor = std::optional<Tensor>;
using torch::headeronly::ScalarType;

template <class T>
constexpr ScalarType kTypeOf = ScalarType::Undefined;
template <>
constexpr ScalarType kTypeOf<float> = ScalarType::Float;
template <>
constexpr ScalarType kTypeOf<int32_t> = ScalarType::Int;
template <>
constexpr ScalarType kTypeOf<int64_t> = ScalarType::Long;
template <>
constexpr ScalarType kTypeOf<bool> = ScalarType::Bool;

template <class... Sizes>
void require(const Tensor& t, const char* name, ScalarType dtype, Sizes... sizes) {
  STD_TORCH_CHECK(t.scalar_type() == dtype, name, ": unexpected dtype");
  STD_TORCH_CHECK(t.dim() == int64_t(sizeof...(sizes)), name, ": expected ", sizeof...(sizes), " dimensions, got ", t.dim());
  int64_t d = 0;
  (([&] {
     STD_TORCH_CHECK(t.size(d) == int64_t(sizes), name, ": expected size ", sizes, " in dimension ", d, ", got ", t.size(d));
     ++d;
   }()),
   ...);
}

// Contiguous copies of strided inputs; they live until the kernel has been issued.
inline std::vector<Tensor>& copies() {
  static thread_local std::vector<Tensor> held;
  return held;
}

// Gives the copies back when a call ends, however it ends.
struct ReleaseCopies {
  ~ReleaseCopies() { copies().clear(); }
};

inline const void* readable(const Tensor& t) {
  if (t.is_contiguous()) return t.data_ptr();
  copies().push_back(torch::stable::contiguous(t));
  return copies().back().data_ptr();
}

template <class T, class... Sizes>
const T* input(const Tensor& t, const char* name, Sizes... sizes) {
  require(t, name, kTypeOf<T>, sizes...);
  return static_cast<const T*>(readable(t));
}
template <class T, class... Sizes>
const T* input(const OptTensor& t, const char* name, Sizes... sizes) {
  return t ? input<T>(*t, name, sizes...) : nullptr;
}

template <class T, class... Sizes>
T* output(const Tensor& t, const char* name, Sizes... sizes) {
  require(t, name, kTypeOf<T>, sizes...);
  STD_TORCH_CHECK(t.is_contiguous(), name, ": an output must be contiguous");
  return static_cast<T*>(t.data_ptr());
}
template <class T, class... Sizes>
T* output(const OptTensor& t, const char* name, Sizes... sizes) {
  return t ? output<T>(*t, name, sizes...) : nullptr;
}

inline Index index_input(const Tensor& t, const char* name, int64_t size) {
  const bool is_int64 = t.scalar_type() == ScalarType::Long;
  require(t, name, is_int64 ? ScalarType::Long : ScalarType::Int, size);
  return {readable(t), is_int64};
}
inline Index index_input(const OptTensor& t, const char* name, int64_t size) {
  return t ? index_input(*t, name, size) : Index{nullptr, false};
}

inline int64_t integer(int64_t value, const char* name, int64_t low, int64_t high) {
  STD_TORCH_CHECK(value >= low && value <= high, name, ": expected an int in [", low, ", ", high, "], got ", value);
  return value;
}

inline IndexOutput index_output(const OptTensor& t, const char* name, int64_t size) {
  if (!t) return {nullptr, false};
  const bool is_int64 = t->scalar_type() == ScalarType::Long;
  if (is_int64) return {output<int64_t>(*t, name, size), true};
  return {output<int32_t>(*t, name, size), false};
}

// Memory moved as bytes: any dtype, the same one on both sides, and the sizes of `like` after the first dimension.
inline void require_rows(const Tensor& t, const char* name, const Tensor& like, int64_t rows) {
  STD_TORCH_CHECK(t.scalar_type() == like.scalar_type(), name, ": unexpected dtype");
  STD_TORCH_CHECK(t.dim() == like.dim() && t.size(0) == rows, name, ": expected ", rows, " rows, got ", t.size(0));
  for (int64_t d = 1; d < like.dim(); ++d) STD_TORCH_CHECK(t.size(d) == like.size(d), name, ": unexpected row shape");
}

inline void check_width(int64_t batch, int64_t gamma) {
  STD_TORCH_CHECK(gamma >= 1, "gamma: expected at least one draft token per request");
  STD_TORCH_CHECK(max64(batch, 1) * (gamma + 1) <= kMaxVerifyRows, "B*N: expected at most ", kMaxVerifyRows, " rows");
}

inline const Tensor* tensor_of(const Tensor& t) { return &t; }
inline const Tensor* tensor_of(const OptTensor& t) { return t ? &*t : nullptr; }
template <class T>
const Tensor* tensor_of(const T&) {
  return nullptr;
}

// The first tensor of a call, whose device is launched on; all others must be there too.
template <class... A>
const Tensor& common_device(const A&... args) {
  const Tensor* first = nullptr;
  for (const Tensor* t : {tensor_of(args)...}) {
    if (!t) continue;
    if (!first) first = t;
    STD_TORCH_CHECK(t->device() == first->device(), "expected all tensors on one device");
  }
  return *first;
}

// Registers a kernel: the boxed call reads each argument by the type that Bind declares, so Bind must take an OptTensor
// exactly where the schema says `Tensor?`. Bind turns the dispatcher's arguments into the operator's parameters, Kernel runs on them.
template <auto Bind, auto Kernel, class = decltype(Bind)>
struct Operator;
template <auto Bind, auto Kernel, class P, class... A>
struct Operator<Bind, Kernel, P (*)(A...)> {
  static void call(A... args) {
    const ReleaseCopies at_end;
    Kernel(Bind(args...));
  }
};

}  // namespace dspark
