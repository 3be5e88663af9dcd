#include "common/order.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void max_safe_verify_len(const MaxSafeVerifyLenParams& p) {
  for (int64_t i = 0; i < p.batch; ++i) {
    const int64_t s = saturate32(p.start_pos[i]);
    const int64_t threshold_of_one = ((s + 1) / p.ratio - (p.coff - 1)) * p.ratio;
    const int64_t kept_from = max64(s, threshold_of_one);
    int64_t longest = (kept_from / p.ratio + p.coff) * p.ratio - 1 - s;
    if (p.ring > 0) longest = min64(longest, p.ring - p.coff * p.ratio + 1);
    p.safe_lens[i] = int32_t(clamp64(longest, 1, p.max_verify_len));
  }
}

}  // namespace dspark::cpu
