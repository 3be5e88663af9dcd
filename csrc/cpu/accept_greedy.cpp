#include "cpu/accept.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void accept_greedy(const AcceptParams& p) {
  for (int64_t r = 0; r < p.batch; ++r) {
    const int64_t* draft = p.draft_tokens + r * p.gamma;
    // In the compact form rows past l - 1 were never computed; what lies there belongs to another request.
    const int64_t computed = p.cu_seqlens ? clamp64(int64_t(p.verify_lens[r]) - 1, 0, p.gamma) : p.gamma;
    int64_t raw = 0;
    while (raw < computed) {
      const int64_t* token = target_at(p, r, raw);
      if (!token || *token != draft[raw]) break;
      ++raw;
    }
    commit(p, r, raw);
  }
}

}  // namespace dspark::cpu
