// Sort32 and MrgSort: pairs of a float score and a 32-bit index, scores descending.
#pragma once
#include "ascendc_on_host/elementwise.h"

namespace AscendC {

struct SortPair {
  float score;
  uint32_t index;
};
static_assert(sizeof(SortPair) == 8);
inline bool descends(const SortPair& a, const SortPair& b) { return a.score > b.score; }

inline void Sort32(const LocalTensor<float>& dst, const LocalTensor<float>& src, const LocalTensor<uint32_t>& index,
                   int32_t repeats) {
  if (repeats < 1 || repeats > 255) host::fault("Sort32: %d repeats, 1 to 255 fit", repeats);
  const uint32_t count = uint32_t(repeats) * 32;
  const host::Access d = dst.operand("Sort32", count * 2, true), s = src.operand("Sort32", count, false),
                     x = index.operand("Sort32", count, false);
  if (d.offset < s.offset + s.bytes && s.offset < d.offset + d.bytes) host::fault("Sort32: overlapping operands");
  ++host::core().counters.sorts;
  host::core().issue_vector("Sort32", uint64_t(repeats), {s, x, d});
  auto* const pairs = reinterpret_cast<SortPair*>(dst.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (!(src.data()[i] == src.data()[i])) host::fault("Sort32: a NaN has no place in the order");
    pairs[i] = {src.data()[i], index.data()[i]};
  }
  for (uint32_t i = 0; i < count; i += 32)
    std::stable_sort(pairs + i, pairs + i + 32, descends);
}

template <class T>
struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;
};

struct MrgSort4Info {
  uint16_t elementLengths[4] = {0, 0, 0, 0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint8_t repeatTimes = 1;
};

inline void merge_pairs(const LocalTensor<float>* lists, const uint16_t* lengths, int count,
                        const LocalTensor<float>& dst) {
  std::vector<SortPair> merged;
  uint32_t total = 0;
  for (int l = 0; l < count; ++l) {
    const auto* pairs = reinterpret_cast<const SortPair*>(lists[l].data());
    for (uint32_t i = 1; i < lengths[l]; ++i)
      if (!(pairs[i - 1].score >= pairs[i].score)) host::fault("MrgSort: list %d is not in descending order", l);
    merged.insert(merged.end(), pairs, pairs + lengths[l]);
    total += lengths[l];
  }
  std::stable_sort(merged.begin(), merged.end(), descends);
  std::memcpy(dst.data(), merged.data(), total * sizeof(SortPair));
}

// Merges the lists named by validBit (0b11, 0b111 or 0b1111). With repeatTimes > 1 there are four lists of one length
// that follow each other, and the next four follow them.
inline void MrgSort(const LocalTensor<float>& dst, const MrgSortSrcList<float>& src, const MrgSort4Info& p) {
  const int count = p.validBit == 0b11 ? 2 : p.validBit == 0b111 ? 3 : p.validBit == 0b1111 ? 4 : 0;
  if (count == 0) host::fault("MrgSort: validBit 0x%x names no two, three or four lists from the first", p.validBit);
  if (p.ifExhaustedSuspension) host::fault("MrgSort: suspension is not emulated");
  if (p.repeatTimes < 1) host::fault("MrgSort: no repeats");
  const LocalTensor<float> lists[4] = {src.src1, src.src2, src.src3, src.src4};
  uint32_t total = 0;
  for (int l = 0; l < count; ++l) {
    if (p.elementLengths[l] < 1 || p.elementLengths[l] > 4095)
      host::fault("MrgSort: list %d has %u elements, 1 to 4095 fit", l, p.elementLengths[l]);
    total += p.elementLengths[l];
    if (p.repeatTimes > 1 && (count != 4 || p.elementLengths[l] != p.elementLengths[0] ||
                              lists[l].offset() != lists[0].offset() + l * p.elementLengths[0] * sizeof(SortPair)))
      host::fault("MrgSort: repeats need four lists of one length, one after the other");
  }
  const host::Access d = dst.operand("MrgSort", uint64_t(total) * 2 * p.repeatTimes, true);
  std::vector<host::Access> reads;
  for (int l = 0; l < count; ++l) {
    const uint64_t length = p.repeatTimes > 1 && l == 0 ? uint64_t(total) * p.repeatTimes : p.elementLengths[l];
    const host::Access s = lists[l].operand("MrgSort", length * 2, false);
    if (d.offset < s.offset + s.bytes && s.offset < d.offset + d.bytes) host::fault("MrgSort: overlapping operands");
    reads.push_back(s);
  }
  while (reads.size() < 4) reads.push_back({d.offset, 0, false});
  ++host::core().counters.sorts;
  host::core().issue_vector("MrgSort", repeats_of(uint64_t(total) * p.repeatTimes, 8),
                            {reads[0], reads[1], reads[2], reads[3], d});
  for (uint32_t r = 0; r < p.repeatTimes; ++r) {
    const uint32_t at = r * total * 2;
    LocalTensor<float> now[4] = {lists[0], lists[1], lists[2], lists[3]};
    for (int l = 0; r > 0 && l < 4; ++l) now[l] = lists[0][at + l * p.elementLengths[0] * 2];
    merge_pairs(now, p.elementLengths, count, dst[at]);
  }
}

}  // namespace AscendC
