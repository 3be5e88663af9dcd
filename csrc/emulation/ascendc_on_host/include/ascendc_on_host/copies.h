// Copies between global memory and the unified buffer, and the scalar cache.
#pragma once
#include "ascendc_on_host/tensors.h"

namespace AscendC {

struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;   // bytes
  uint32_t srcStride = 0;  // gap between blocks: bytes in global memory, 32-byte units in the unified buffer
  uint32_t dstStride = 0;
  uint32_t rsv = 0;
};

template <class T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;  // elements, at most 32 bytes
  T paddingValue{};
};

// The older overloads: here so that a call with unnamed parameters is ambiguous, as it is with the real headers.
struct DataCopyParams {
  uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
struct DataCopyPadParams {
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  uint64_t paddingValue = 0;
};
template <class T>
void DataCopyPad(const LocalTensor<T>&, const GlobalTensor<T>&, const DataCopyParams&, const DataCopyPadParams&) {
  host::fault("DataCopyPad: the form with DataCopyParams is not emulated");
}
template <class T>
void DataCopyPad(const GlobalTensor<T>&, const LocalTensor<T>&, const DataCopyParams&) {
  host::fault("DataCopyPad: the form with DataCopyParams is not emulated");
}

template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& p,
                 const DataCopyPadExtParams<T>& pad) {
  host::Core& core = host::core();
  const uint32_t left = pad.isPad ? pad.leftPadding * sizeof(T) : 0;
  const uint32_t right = pad.isPad ? pad.rightPadding * sizeof(T) : 0;
  if (p.blockCount == 0 || p.blockCount > 4095) host::fault("DataCopyPad: %u blocks, 1 to 4095 fit", p.blockCount);
  if (left > host::kBlock || right > host::kBlock) host::fault("DataCopyPad: padding over 32 bytes");
  const uint32_t row = (left + p.blockLen + right + host::kBlock - 1) / host::kBlock * host::kBlock;
  const uint64_t pitch = row + uint64_t(p.dstStride) * host::kBlock;
  const uint64_t bytes = (p.blockCount - 1) * pitch + row;
  const host::Access all = dst.operand("DataCopyPad", bytes / sizeof(T), true);
  core.issue(host::kLoad, "DataCopyPad", {all});
  ++core.counters.loads;
  for (uint32_t b = 0; b < p.blockCount; ++b) {
    const uint32_t at = uint32_t(all.offset + b * pitch);
    if (p.blockLen % sizeof(T)) host::fault("DataCopyPad: blockLen is not a whole number of elements");
    std::memset(core.at(at), host::poison, row);  // what is not padded by a value is undefined
    for (uint32_t i = 0; i < left; i += sizeof(T)) std::memcpy(core.at(at + i), &pad.paddingValue, sizeof(T));
    const uint64_t first = (uint64_t(p.blockLen) + p.srcStride) * b / sizeof(T);
    if (p.blockLen)
      core.copy_in(src.address("DataCopyPad", first, p.blockLen / sizeof(T)), at + left, p.blockLen);
    for (uint32_t i = 0; i < right; i += sizeof(T))
      std::memcpy(core.at(at + left + p.blockLen + i), &pad.paddingValue, sizeof(T));
  }
}

template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& p) {
  host::Core& core = host::core();
  if (p.blockCount == 0 || p.blockCount > 4095) host::fault("DataCopyPad: %u blocks, 1 to 4095 fit", p.blockCount);
  const uint32_t row = (p.blockLen + host::kBlock - 1) / host::kBlock * host::kBlock;
  const uint64_t pitch = row + uint64_t(p.srcStride) * host::kBlock;
  const host::Access all = src.operand("DataCopyPad", ((p.blockCount - 1) * pitch + p.blockLen) / sizeof(T), false);
  core.issue(host::kStore, "DataCopyPad", {all});
  ++core.counters.stores;
  for (uint32_t b = 0; b < p.blockCount && p.blockLen; ++b) {
    const uint64_t first = (uint64_t(p.blockLen) + p.dstStride) * b / sizeof(T);
    core.copy_out(uint32_t(all.offset + b * pitch), dst.address("DataCopyPad", first, p.blockLen / sizeof(T)),
                  p.blockLen);
  }
}

// Whole 32-byte blocks.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count) {
  if (count * sizeof(T) % host::kBlock) host::fault("DataCopy: %u elements are not whole blocks of 32 bytes", count);
  DataCopyPad(dst, src, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0}, DataCopyPadExtParams<T>{});
}
template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  if (count * sizeof(T) % host::kBlock) host::fault("DataCopy: %u elements are not whole blocks of 32 bytes", count);
  DataCopyPad(dst, src, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0});
}
// Within the unified buffer the vector unit copies.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {
  if (count * sizeof(T) % host::kBlock) host::fault("DataCopy: %u elements are not whole blocks of 32 bytes", count);
  host::core().issue_vector("DataCopy", (count * sizeof(T) + host::kRepeat - 1) / host::kRepeat,
                            {dst.operand("DataCopy", count, true), src.operand("DataCopy", count, false)});
  std::memmove(dst.data(), src.data(), count * sizeof(T));
}

template <class T, CacheLine lines, DcciDst to = DcciDst::CACHELINE_OUT>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& t) {
  host::core().clean(t.address("DataCacheCleanAndInvalid", 0, 1), lines == CacheLine::ENTIRE_DATA_CACHE);
}

}  // namespace AscendC
