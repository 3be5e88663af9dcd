// Views of the unified buffer and of global memory.
#pragma once
#include "ascendc_on_host/language.h"

namespace AscendC {

template <class T>
class LocalTensor {
 public:
  using PrimType = T;
  LocalTensor() = default;
  LocalTensor(uint32_t offset, uint32_t size, uint32_t ticket) : offset_(offset), size_(size), ticket_(ticket) {}

  T GetValue(uint32_t i) const {
    T value;
    host::Core& core = host::core();
    core.issue(host::kScalar, "GetValue", {element("GetValue", i, false)});
    ++core.counters.scalar_reads;
    std::memcpy(&value, core.at(offset_ + i * sizeof(T)), sizeof(T));
    return value;
  }
  void SetValue(uint32_t i, T value) const {
    host::Core& core = host::core();
    core.issue(host::kScalar, "SetValue", {element("SetValue", i, true)});
    ++core.counters.scalar_writes;
    std::memcpy(core.at(offset_ + i * sizeof(T)), &value, sizeof(T));
  }
  LocalTensor operator[](uint32_t i) const {
    if (i > size_) host::fault("operator[]: element %u of a tensor of %u", i, size_);
    return {uint32_t(offset_ + i * sizeof(T)), size_ - i, ticket_};
  }
  template <class U>
  LocalTensor<U> ReinterpretCast() const {
    return {offset_, uint32_t(size_ * sizeof(T) / sizeof(U)), ticket_};
  }
  uint32_t GetSize() const { return size_; }

  // The operand of a pipe's instruction: `count` elements from a 32-byte boundary on.
  host::Access operand(const char* name, uint64_t count, bool writes) const {
    if (offset_ % host::kBlock) host::fault("%s: an operand is not aligned to 32 bytes", name);
    return range(name, 0, count, writes);
  }
  host::Access range(const char* name, uint64_t first, uint64_t count, bool writes) const {
    if (first + count > size_)
      host::fault("%s: elements up to %llu of a tensor of %u", name, (unsigned long long)(first + count), size_);
    const host::Access access{uint32_t(offset_ + first * sizeof(T)), uint32_t(count * sizeof(T)), writes};
    host::core().check_owner(name, access.offset, access.bytes, ticket_);
    return access;
  }
  T* data() const { return reinterpret_cast<T*>(host::core().at(offset_)); }
  uint32_t offset() const { return offset_; }
  uint32_t ticket() const { return ticket_; }

 private:
  host::Access element(const char* name, uint32_t i, bool writes) const {
    if (offset_ % sizeof(T)) host::fault("%s: address not aligned to the type", name);
    return range(name, i, 1, writes);
  }
  uint32_t offset_ = 0, size_ = 0, ticket_ = 0;
};

template <class T>
class GlobalTensor {
 public:
  void SetGlobalBuffer(T* data, uint64_t size = ~uint64_t(0)) {
    data_ = data;
    size_ = size;
  }
  T GetValue(uint64_t i) const {
    T value;
    host::core().load_scalar(address("GetValue", i, 1), &value, sizeof(T));
    return value;
  }
  void SetValue(uint64_t i, T value) { host::core().store_scalar(address("SetValue", i, 1), &value, sizeof(T)); }
  GlobalTensor operator[](uint64_t i) const {
    GlobalTensor rest;
    rest.data_ = data_ + i;
    rest.size_ = size_ == ~uint64_t(0) ? size_ : size_ - std::min(i, size_);
    return rest;
  }
  uintptr_t address(const char* name, uint64_t i, uint64_t count) const {
    if (size_ != ~uint64_t(0) && (i > size_ || count > size_ - i)) host::fault("%s: outside the global tensor", name);
    return uintptr_t(data_ + i);
  }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace AscendC
