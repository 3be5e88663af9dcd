// Sorts up to 3584 values, descending: Sort32 makes runs of 32 pairs, MrgSort joins four runs at a time.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

// Joins runs of `run` pairs (the last may be shorter) out of n, four at a time, from one place to another.
__aicore__ inline void merge_runs(const Local<float>& to, const Local<float>& from, uint32_t run, uint32_t n) {
  const uint32_t fours = n / (4 * run), done = fours * 4 * run, left = n - done;
  in_order();
  for (uint32_t first = 0; first < fours + (left > 0); first += fours ? fours : 1) {
    AscendC::MrgSort4Info info;
    const bool whole = first < fours;
    const uint32_t at = whole ? 0 : done;
    uint32_t lists = 0;
    for (; lists < 4 && (whole || lists * run < left); ++lists)
      info.elementLengths[lists] = uint16_t(whole ? run : min64(run, left - lists * run));
    if (lists == 1) {
      AscendC::DataCopy(to[at * 2], from[at * 2], left * 2);
      continue;
    }
    info.ifExhaustedSuspension = false;
    info.validBit = uint16_t((1 << lists) - 1);
    info.repeatTimes = uint8_t(whole ? fours : 1);
    AscendC::MrgSortSrcList<float> sources;
    sources.src1 = from[at * 2];
    sources.src2 = from[(at + run) * 2];
    sources.src3 = from[(at + (lists > 2 ? 2 * run : 0)) * 2];
    sources.src4 = from[(at + (lists > 3 ? 3 * run : 0)) * 2];
    AscendC::MrgSort(to[at * 2], sources, info);
  }
}

// Sorts n values (a multiple of 32) into pairs at `to`; `other` is as large. `index` is what Sort32 wants as indices.
__aicore__ inline void sort(const Local<float>& to, const Local<float>& other, const Local<float>& values,
                            const Local<int32_t>& index, uint32_t n) {
  int levels = 0;
  for (uint32_t run = 32; run < n; run *= 4) ++levels;
  in_order();
  AscendC::Sort32(levels % 2 ? other : to, values, index.ReinterpretCast<uint32_t>(), int32_t(n / 32));
  bool in_other = levels % 2;
  for (uint32_t run = 32; run < n; run *= 4, in_other = !in_other)
    merge_runs(in_other ? to : other, in_other ? other : to, run, n);
}

}  // namespace dspark::ascend
