// Ordering of survival keys: a full sort where a budget is searched, a selection where it is known.
#include <algorithm>
#include <functional>

#include "cpu/planning.h"

namespace dspark::cpu {
namespace {

constexpr int64_t kSmall = 40;    // up to here, comparing beats counting
constexpr int64_t kLarge = 3000;  // from here on, a pass less is worth longer histograms

constexpr int kCoarseShift = 18, kCoarse = 1 << (kKeyBits - kCoarseShift);  // buckets of the selection
static_assert(kCoarse * sizeof(uint32_t) <= 4096, "the histogram stays in the L1 cache");

// Stable, descending, least significant digit first; returns the half that holds the result. A digit that all keys
// share costs nothing.
template <int kBits, int kDigits>
uint32_t* radix_sort(uint32_t* keys, uint32_t* other, int64_t n) {
  constexpr uint32_t kRadix = 1u << kBits, kMask = kRadix - 1;
  static_assert(kBits * kDigits >= kKeyBits, "the digits cover a key");
  uint32_t histogram[kDigits][kRadix] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++histogram[d][(keys[i] >> (d * kBits)) & kMask];
  for (int d = 0; d < kDigits; ++d) {
    uint32_t* start = histogram[d];
    const int shift = d * kBits;
    if (start[(keys[0] >> shift) & kMask] == uint32_t(n)) continue;
    uint32_t next = 0;
    for (uint32_t digit = kRadix; digit-- > 0;) {
      const uint32_t size = start[digit];
      start[digit] = next;
      next += size;
    }
    for (int64_t i = 0; i < n; ++i) other[start[(keys[i] >> shift) & kMask]++] = keys[i];
    std::swap(keys, other);
  }
  return keys;
}

// Descending; returns the half that holds the result.
uint32_t* sort_descending(uint32_t* keys, uint32_t* other, int64_t n) {
  if (n >= kLarge) return radix_sort<10, 3>(keys, other, n);
  if (n > kSmall) return radix_sort<7, 4>(keys, other, n);
  std::sort(keys, keys + n, std::greater<uint32_t>());
  return keys;
}

// The cut of `admitted` in keys that are sorted.
Cut cut_in(const uint32_t* keys, int64_t count, int64_t admitted) {
  const uint32_t key = keys[admitted - 1];
  const auto range = std::equal_range(keys, keys + count, key, std::greater<uint32_t>());
  return {key, admitted - (range.first - keys), range.second - range.first, 0};
}

// Nothing or everything is admitted: a cut that no candidate, or every candidate, passes.
constexpr uint32_t kNone = (uint32_t(1) << kKeyBits) - 1;
Cut cut_at_end(const Candidates& c, int64_t admitted) {
  return {admitted > 0 ? c.least : kNone, 0, 0, c.tau0};
}

}  // namespace

void sort_keys(Candidates& c) {
  c.keys = sort_descending(c.keys, at_least(scratch().other, c.count), c.count);
}

Cut cut_sorted(const Candidates& c, int64_t admitted) {
  Cut cut = admitted <= 0 || admitted >= c.count ? cut_at_end(c, admitted) : cut_in(c.keys, c.count, admitted);
  cut.tau = tau_of(c, admitted);
  return cut;
}

Cut cut_unsorted(const Candidates& c, int64_t admitted) {
  if (admitted <= 0 || admitted >= c.count) {
    Cut cut = cut_at_end(c, admitted);
    cut.tau = tau_of(c, admitted);
    return cut;
  }
  // One count of the leading bits finds the bucket that holds the cut; only that bucket is ordered.
  uint32_t histogram[kCoarse] = {};
  for (int64_t i = 0; i < c.count; ++i) ++histogram[c.keys[i] >> kCoarseShift];
  int64_t bucket = kCoarse - 1, above = 0;
  while (above + histogram[bucket] < admitted) above += histogram[bucket--];

  uint32_t* inside = at_least(scratch().other, c.count);
  int64_t tau = c.tau0, n = 0;
  for (int64_t i = 0; i < c.count; ++i) {
    const uint32_t key = c.keys[i];
    const int64_t place = key >> kCoarseShift;
    if (place > bucket) tau += q43(key_survival(key));
    inside[n] = key;
    n += place == bucket;
  }
  inside = sort_descending(inside, at_least(scratch().third, n), n);
  Cut cut = cut_in(inside, n, admitted - above);
  for (int64_t i = 0; i < admitted - above; ++i) tau += q43(key_survival(inside[i]));
  cut.tau = tau;
  return cut;
}

}  // namespace dspark::cpu
