// Moving and filling byte ranges by one warp, 16 bytes a lane wherever addresses allow it.
//
// A warp takes 4 KB of one row, eight accesses in flight per lane, to keep memory busy on hidden states and logits
// (10 KB to 600 KB a row), and short rows still spread over all multiprocessors. Source and destination of a row may be
// aligned differently (odd row sizes, views); the widest access that both can have is found per row, and only bytes
// before the first and after the last of those are moved one by one.
#pragma once
#include "common/params.h"
#include "cuda/device.cuh"

namespace dspark::cuda {

constexpr int kMoveThreads = 128;
constexpr int64_t kChunk = 4096;

template <class Word>
__device__ __forceinline__ void copy_words(const uint8_t* from, uint8_t* to, int64_t bytes, int lane) {
  constexpr int64_t kSize = sizeof(Word);
  const int64_t head = min64(bytes, int64_t(-reinterpret_cast<uintptr_t>(to) & (kSize - 1)));
  const int64_t words = (bytes - head) / kSize, tail = head + words * kSize;
  const Word* source = reinterpret_cast<const Word*>(from + head);
  Word* destination = reinterpret_cast<Word*>(to + head);
#pragma unroll 8
  for (int64_t i = lane; i < words; i += 32) destination[i] = source[i];
  for (int64_t i = lane; i < head; i += 32) to[i] = from[i];
  for (int64_t i = tail + lane; i < bytes; i += 32) to[i] = from[i];
}

__device__ __forceinline__ void copy_bytes(const uint8_t* from, uint8_t* to, int64_t bytes, int lane) {
  const uintptr_t shift = reinterpret_cast<uintptr_t>(from) ^ reinterpret_cast<uintptr_t>(to);
  if (shift % 16 == 0) copy_words<uint4>(from, to, bytes, lane);
  else if (shift % 8 == 0) copy_words<uint2>(from, to, bytes, lane);
  else if (shift % 4 == 0) copy_words<uint32_t>(from, to, bytes, lane);
  else if (shift % 2 == 0) copy_words<uint16_t>(from, to, bytes, lane);
  else copy_words<uint8_t>(from, to, bytes, lane);
}

// Byte i of a row that is filled: elements start at multiples of their size, a power of two.
__device__ __forceinline__ uint8_t fill_byte(int64_t fill, int64_t element_bytes, int64_t i) {
  return uint8_t(fill >> min64(8 * (i & (element_bytes - 1)), 63));
}

// Bytes [first, first + bytes) of a row that is filled; `to` is where the first goes.
__device__ __forceinline__ void fill_bytes(const MoveRowsParams& p, uint8_t* to, int64_t first, int64_t bytes,
                                           int lane) {
  const int64_t head = min64(bytes, int64_t(-reinterpret_cast<uintptr_t>(to) & 15));
  const int64_t words = (bytes - head) / 16, tail = head + words * 16;
  uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    word[i / 4] |= uint32_t(fill_byte(p.fill, p.element_bytes, first + head + i)) << (8 * (i % 4));
  const uint4 pattern = make_uint4(word[0], word[1], word[2], word[3]);  // 16 is a multiple of every element
  for (int64_t i = lane; i < words; i += 32) reinterpret_cast<uint4*>(to + head)[i] = pattern;
  for (int64_t i = lane; i < head; i += 32) to[i] = fill_byte(p.fill, p.element_bytes, first + i);
  for (int64_t i = tail + lane; i < bytes; i += 32) to[i] = fill_byte(p.fill, p.element_bytes, first + i);
}

// One warp per chunk of a destination row; `source_row(row)` is the row it comes from, or below 0 if it is filled.
template <class SourceRow>
__device__ void move_rows(const MoveRowsParams& p, int64_t destination_rows, SourceRow source_row) {
  const int lane = threadIdx.x % 32;
  const int64_t chunks = (p.row_bytes + kChunk - 1) / kChunk, items = destination_rows * chunks;
  const int64_t stride = int64_t(gridDim.x) * (kMoveThreads / 32);
  for (int64_t item = int64_t(blockIdx.x) * (kMoveThreads / 32) + threadIdx.x / 32; item < items; item += stride) {
    const int64_t row = item / chunks, first = item % chunks * kChunk;
    const int64_t bytes = min64(kChunk, p.row_bytes - first), from = source_row(row);
    uint8_t* to = p.destination + row * p.row_bytes + first;
    if (from >= 0) copy_bytes(p.source + from * p.row_bytes + first, to, bytes, lane);
    else fill_bytes(p, to, first, bytes, lane);
  }
}

inline cudaError_t launch_move(void (*kernel)(MoveRowsParams), const MoveRowsParams& p, int64_t destination_rows,
                               cudaStream_t stream) {
  if (p.row_bytes == 0 || destination_rows == 0) return cudaSuccess;
  const int64_t items = destination_rows * ceil_div(p.row_bytes, kChunk);
  return launch(kernel, blocks_for(items, kMoveThreads / 32), kMoveThreads, 0, stream, p);
}

}  // namespace dspark::cuda
