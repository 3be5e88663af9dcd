// Comparisons to bit masks, Select, Gather and reductions.
#pragma once
#include "ascendc_on_host/elementwise.h"

namespace AscendC {

template <class T>
bool compares(T a, CMPMODE mode, T b) {
  switch (mode) {
    case CMPMODE::LT: return a < b;
    case CMPMODE::GT: return a > b;
    case CMPMODE::EQ: return a == b;
    case CMPMODE::LE: return a <= b;
    case CMPMODE::GE: return a >= b;
    default: return a != b;
  }
}

template <class T>
void require_comparable(const char* name, CMPMODE mode, uint32_t count) {
  require_type<T, float, int32_t>(name);
  if (std::is_same_v<T, int32_t> && mode != CMPMODE::EQ) host::fault("%s: int32 compares for equality only", name);
  if (count * sizeof(T) % host::kRepeat) host::fault("%s: %u elements are not a multiple of 256 bytes", name, count);
}

template <class T, class F>
void write_bits(const LocalTensor<uint8_t>& dst, uint32_t count, F f) {
  for (uint32_t i = 0; i < count; i += 8) {
    uint8_t bits = 0;
    for (uint32_t j = 0; j < 8; ++j) bits |= uint8_t(f(i + j)) << j;
    dst.data()[i / 8] = bits;
  }
}

template <class T>
void CompareScalar(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src, T value, CMPMODE mode, uint32_t count) {
  require_comparable<T>("CompareScalar", mode, count);
  const host::Access d = dst.operand("CompareScalar", count / 8, true);
  host::core().issue_vector("CompareScalar", repeats_of(count, sizeof(T)),
                            {src.operand("CompareScalar", count, false), d});
  write_bits<T>(dst, count, [&](uint32_t i) { return compares(src.data()[i], mode, value); });
}

template <class T>
void Compare(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode,
             uint32_t count) {
  require_comparable<T>("Compare", mode, count);
  host::core().issue_vector("Compare", repeats_of(count, sizeof(T)),
                            {a.operand("Compare", count, false), b.operand("Compare", count, false),
                             dst.operand("Compare", count / 8, true)});
  write_bits<T>(dst, count, [&](uint32_t i) { return compares(a.data()[i], mode, b.data()[i]); });
}

// Every tensor-mask mode of Select uses the last 8 KiB of the unified buffer.
inline void require_select_room() {
  if (host::core().allocated() > host::kBufferBytes - host::kSelectReserve)
    host::fault("Select: the last 8 KiB of the unified buffer are not free");
}

template <class T>
void Select(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& mask, const LocalTensor<T>& a, T otherwise,
            SELMODE mode, uint32_t count) {
  require_type<T, float>("Select");
  if (mode != SELMODE::VSEL_TENSOR_SCALAR_MODE) host::fault("Select: a scalar needs VSEL_TENSOR_SCALAR_MODE");
  require_select_room();
  const host::Access d = dst.operand("Select", count, true), x = a.operand("Select", count, false);
  require_apart("Select", d, x);
  host::core().issue_vector("Select", repeats_of(count, sizeof(T)),
                            {x, mask.operand("Select", (count + 7) / 8, false), d});
  for (uint32_t i = 0; i < count; ++i)
    dst.data()[i] = mask.data()[i / 8] >> (i % 8) & 1 ? a.data()[i] : otherwise;
}

template <class T>
void Select(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& mask, const LocalTensor<T>& a,
            const LocalTensor<T>& b, SELMODE mode, uint32_t count) {
  require_type<T, float>("Select");
  if (mode != SELMODE::VSEL_TENSOR_TENSOR_MODE) host::fault("Select: two tensors need VSEL_TENSOR_TENSOR_MODE");
  require_select_room();
  const host::Access d = dst.operand("Select", count, true), x = a.operand("Select", count, false),
                     y = b.operand("Select", count, false);
  require_apart("Select", d, x);
  require_apart("Select", d, y);
  host::core().issue_vector("Select", repeats_of(count, sizeof(T)),
                            {x, y, mask.operand("Select", (count + 7) / 8, false), d});
  for (uint32_t i = 0; i < count; ++i)
    dst.data()[i] = mask.data()[i / 8] >> (i % 8) & 1 ? a.data()[i] : b.data()[i];
}

// dst[i] = the element at byte base + offsets[i] of src.
template <class T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offsets, uint32_t base,
            uint32_t count) {
  if (sizeof(T) != 2 && sizeof(T) != 4) host::fault("Gather: elements of 2 or 4 bytes only");
  const host::Access d = dst.operand("Gather", count, true), o = offsets.operand("Gather", count, false);
  src.operand("Gather", 0, false);
  uint64_t least = ~uint64_t(0), most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = uint64_t(base) + offsets.data()[i];
    if (at % sizeof(T)) host::fault("Gather: offset %llu is not a multiple of the element", (unsigned long long)at);
    if (at + sizeof(T) > uint64_t(src.GetSize()) * sizeof(T)) host::fault("Gather: offset past the end of the source");
    least = std::min(least, at / sizeof(T));
    most = std::max(most, at / sizeof(T) + 1);
  }
  const host::Access s = count ? src.range("Gather", least, most - least, false) : host::Access{0, 0, false};
  if (d.offset < s.offset + s.bytes && s.offset < d.offset + d.bytes) host::fault("Gather: overlapping operands");
  ++host::core().counters.gathers;
  host::core().issue_vector("Gather", repeats_of(count, sizeof(T)), {s, o, d});
  for (uint32_t i = 0; i < count; ++i) dst.data()[i] = src.data()[(base + offsets.data()[i]) / sizeof(T)];
}

// A repeat leaves `results` elements in `work`: a maximum comes with its place, wanted or not.
template <class T, class F>
void reduce(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work,
            int32_t count, uint32_t results, F f) {
  require_type<T, float>(name);
  const uint32_t blocks = uint32_t(repeats_of(count, sizeof(T))), room = (results * blocks + 7) / 8 * 8;
  const host::Access s = src.operand(name, count, false), w = work.operand(name, room, true);
  require_apart(name, w, s);
  host::core().issue_vector(name, blocks + repeats_of(blocks, sizeof(T)), {s, w, dst.operand(name, 1, true)});
  // By halves: no order of summation may be relied upon.
  std::vector<T> values(src.data(), src.data() + count);
  for (size_t n = values.size(); n > 1; n = (n + 1) / 2)
    for (size_t i = 0; i < n / 2; ++i) values[i] = f(values[i], values[n - 1 - i]);
  std::memset(reinterpret_cast<void*>(work.data()), host::poison, room * sizeof(T));
  dst.data()[0] = values.at(0);
}
template <class T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work, int32_t count) {
  reduce("ReduceSum", dst, src, work, count, 1, [](T a, T b) { return a + b; });
}
template <class T>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work, int32_t count) {
  reduce("ReduceMax", dst, src, work, count, 2, [](T a, T b) { return a > b ? a : b; });
}
template <class T>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& work, int32_t count) {
  reduce("ReduceMin", dst, src, work, count, 2, [](T a, T b) { return a < b ? a : b; });
}

}  // namespace AscendC
