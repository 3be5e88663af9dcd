#include "cpu/accept.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void finalize_accept(const AcceptParams& p) {
  for (int64_t r = 0; r < p.batch; ++r) commit(p, r, clamp64(p.raw_correct_len[r], 0, p.gamma));
}

}  // namespace dspark::cpu
