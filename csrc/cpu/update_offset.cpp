#include "cpu/accept.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void update_offset(const UpdateOffsetParams& p) {
  for (int64_t r = 0; r < p.batch; ++r) {
    const int64_t correct = clamp64(p.correct_len[r], 0, p.gamma);
    learn(p.learning, p.gamma, r, correct, clamp64(p.verify_lens[r], 0, p.gamma + 1));
  }
}

}  // namespace dspark::cpu
