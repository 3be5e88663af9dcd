// One request's survival as a stream of values, k = 0, 1, ...: from confidences, from logits, or from survival that a
// caller gives. Streams keep nothing per draft, so a kernel can go over a row twice without storing it.
#pragma once
#include "common/convert.h"
#include "common/params.h"
#include "cuda/sigmoid.cuh"

namespace dspark::cuda {

__device__ __forceinline__ bool is_fresh(const Freshness& f, int64_t r, int64_t row) {
  if (f.fresh && !f.fresh[r]) return false;
  return !f.generation || (f.generation[row] == f.expected[r] && f.expected[r] >= 1);
}

// The left-to-right product of request r's confidences.
class ProductRow {
 public:
  __device__ ProductRow(const Confidence& in, const Freshness& freshness, int64_t gamma, int64_t r) : in_(in) {
    const int64_t row = in.slots ? in.slots[r] : r;
    const bool inside = row >= 0 && row < in.rows;
    first_ = inside ? row * gamma : 0;
    reads_ = inside && !(freshness.optimistic && !is_fresh(freshness, r, row));
    constant_ = freshness.optimistic ? 1.0f : 0.0f;
    if (!in.is_logits || !in.offset) return;
    const int64_t slot = in.offset_slots ? in.offset_slots[r] : r;
    has_offset_ = slot >= 0 && slot < in.offset_rows;
    if (has_offset_) offset_ = in.offset[slot];
  }

  __device__ float next(int64_t k) {
    calibrated_ = reads_ ? unit_interval(confidence(k)) : constant_;
    return prefix_ = survival_step(prefix_, calibrated_);
  }

  // The confidence that the last next() used.
  __device__ float calibrated() const { return calibrated_; }

 private:
  __device__ float confidence(int64_t k) const {
    float x = load_float(in_.values, in_.dtype, first_ + k);
    if (!in_.is_logits) return x;
    if (in_.scale) x = __fmul_rn(in_.scale[k], x);
    if (in_.bias) x = __fadd_rn(x, in_.bias[k]);
    return sigmoid(has_offset_ ? __fadd_rn(x, offset_) : x);
  }

  const Confidence& in_;
  int64_t first_;
  bool reads_, has_offset_ = false;
  float constant_, offset_ = 0.0f, prefix_ = 1.0f, calibrated_ = 0.0f;
};

// A given row as its running minimum in [0, 1], so that any input is a valid survival.
class MonotoneRow {
 public:
  __device__ MonotoneRow(const float* survival, int64_t gamma, int64_t r) : row_(survival + r * gamma) {}
  __device__ float next(int64_t k) {
    const float s = unit_interval(row_[k]);
    return least_ = s < least_ ? s : least_;
  }

 private:
  const float* row_;
  float least_ = 1.0f;
};

}  // namespace dspark::cuda
