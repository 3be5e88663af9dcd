// What the per-request operators share: requests dealt to cores in tiles, and a tile's fields in the unified buffer.
//
// A core takes 8 requests at least, whole 32-byte blocks of every int32 output, and 64 at most, one vector repeat: 256
// requests keep 32 cores busy. What is left to the scalar unit is a few accesses per request, all in the buffer.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

constexpr uint32_t kTileLanes = 64, kLeastTile = 8;

// for (RequestTile tile(batch); tile.count; tile.next())
struct RequestTile {
  int64_t first, batch, step;
  uint32_t count;

  __aicore__ inline explicit RequestTile(int64_t requests) : batch(requests) {
    const int64_t blocks = AscendC::GetBlockNum(), each = (batch + blocks - 1) / blocks;
    step = clamp64((each + kLeastTile - 1) / kLeastTile * kLeastTile, kLeastTile, kTileLanes);
    first = AscendC::GetBlockIdx() * step;
    set_count();
  }
  // What a tile left in the buffer may be overwritten once every pipe is done with it.
  __aicore__ inline void next() {
    AscendC::PipeBarrier<PIPE_ALL>();
    first += AscendC::GetBlockNum() * step;
    set_count();
  }

 private:
  __aicore__ inline void set_count() { count = uint32_t(clamp64(batch - first, 0, step)); }
};

// The unified buffer, given out from the front.
template <uint32_t bytes>
class Fields {
 public:
  __aicore__ inline Fields() { pipe_.InitBuffer(buffer_, bytes); }
  template <class T>
  __aicore__ inline Local<T> take(uint32_t count) {
    const Local<T> field = buffer_.template GetWithOffset<T>(count, used_);
    used_ += round_up(count * sizeof(T), 32);
    return field;
  }

 private:
  AscendC::TPipe pipe_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> buffer_;
  uint32_t used_ = 0;
};

// Rows of `count` elements, `stride` elements apart in global memory and `pitch`, whole 32-byte blocks, in the buffer.
template <class T>
__aicore__ inline void load_rows(const Local<T>& to, const Global<T>& from, uint32_t rows, uint32_t count,
                                 int64_t stride, uint32_t pitch) {
  const uint32_t bytes = uint32_t(count * sizeof(T)), apart = (pitch * sizeof(T) - round_up(bytes, 32)) / 32;
  const AscendC::DataCopyExtParams shape{uint16_t(rows), bytes, uint32_t((stride - count) * sizeof(T)), apart, 0};
  AscendC::DataCopyPad(to, from, shape, AscendC::DataCopyPadExtParams<T>{false, 0, 0, T()});
}
template <class T>
__aicore__ inline void store_rows(const Global<T>& to, const Local<T>& from, uint32_t rows, uint32_t count,
                                  int64_t stride, uint32_t pitch) {
  const uint32_t bytes = uint32_t(count * sizeof(T)), apart = (pitch * sizeof(T) - round_up(bytes, 32)) / 32;
  const AscendC::DataCopyExtParams shape{uint16_t(rows), bytes, apart, uint32_t((stride - count) * sizeof(T)), 0};
  AscendC::DataCopyPad(to, from, shape);
}

// The elements of an index array that belong to a tile, or those of an output to be.
class IndexField {
 public:
  __aicore__ inline IndexField(const Local<int64_t>& words, bool is_int64) : words_(words), is_int64_(is_int64) {}

  __aicore__ inline void load_from(const void* data, const RequestTile& tile) const {
    if (is_int64_) load(words_, global<int64_t>(data)[uint64_t(tile.first)], tile.count);
    else load(narrow(), global<int32_t>(data)[uint64_t(tile.first)], tile.count);
  }
  __aicore__ inline void store_to(void* data, const RequestTile& tile) const {
    if (is_int64_) store(global<int64_t>(data)[uint64_t(tile.first)], words_, tile.count);
    else store(global<int32_t>(data)[uint64_t(tile.first)], narrow(), tile.count);
  }
  __aicore__ inline int64_t get(uint32_t i) const { return is_int64_ ? words_.GetValue(i) : narrow().GetValue(i); }
  __aicore__ inline void set(uint32_t i, int64_t value) const {
    if (is_int64_) words_.SetValue(i, value);
    else narrow().SetValue(i, int32_t(value));
  }

 private:
  __aicore__ inline Local<int32_t> narrow() const { return words_.ReinterpretCast<int32_t>(); }
  Local<int64_t> words_;
  bool is_int64_;
};

}  // namespace dspark::ascend
