#include "common/order.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void pad_to_bucket(const PadToBucketParams& p) {
  const int64_t cap = p.cap < 0 ? 0x7fffffff : min64(p.cap, 0x7fffffff);
  int64_t total = 0;
  for (int64_t i = 0; i < p.batch; ++i) {
    const int64_t length = max64(p.verify_lens[i], 0);
    total += length;
    p.padded[i] = p.seqused[i] = int32_t(min64(length, cap));
  }
  const int64_t slack = max64(p.rows - total, 0), padding = p.slots - p.batch;
  if (padding == 0 && p.batch > 0) {
    const int64_t last = p.batch - 1;
    p.padded[last] = int32_t(min64(max64(p.verify_lens[last], 0) + slack, cap));
  }
  for (int64_t j = 0; j < padding; ++j) {
    p.padded[p.batch + j] = int32_t(min64(slack / padding + (j < slack % padding), cap));
    p.seqused[p.batch + j] = 0;
  }
}

}  // namespace dspark::cpu
