// Writes one element's bit pattern over a range of bytes, at memory speed for any element size.
#pragma once
#include <stdint.h>

#include <cstring>

#include "common/order.h"

namespace dspark::cpu {

class FillBytes {
 public:
  FillBytes(int64_t fill, int64_t element_bytes) : one_byte_(true) {
    for (int64_t i = 0; i < kBlock; ++i) {
      const int64_t shift = 8 * (i & (element_bytes - 1));  // element sizes are powers of two
      block_[i] = uint8_t(fill >> min64(shift, 63));
      one_byte_ &= block_[i] == block_[0];
    }
  }

  void operator()(uint8_t* to, int64_t bytes) const {
    if (bytes <= 0) return;
    if (one_byte_) {
      std::memset(to, block_[0], size_t(bytes));
      return;
    }
    for (; bytes > kBlock; to += kBlock, bytes -= kBlock) std::memcpy(to, block_, kBlock);
    std::memcpy(to, block_, size_t(bytes));
  }

 private:
  static constexpr int64_t kBlock = 1024;
  bool one_byte_;
  uint8_t block_[kBlock];
};

}  // namespace dspark::cpu
