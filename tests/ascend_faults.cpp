// Kernels with one planted error each, for the emulation of AscendC. With `right` the error is absent.
//   ascend_faults            lists the names
//   ascend_faults NAME 0|1   runs one, with the error (0) or without; prints what the emulation says, then exits with 1
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernel_operator.h"

using namespace AscendC;
namespace host = ascendc_on_host;

namespace {

bool right = false;
alignas(64) float memory[4096];
alignas(64) int64_t words[64];

struct Fault {
  const char* name;
  void (*kernel)();
  uint32_t blocks;
};
std::vector<Fault>& faults() {
  static std::vector<Fault> all;
  return all;
}
struct Register {
  Register(const char* name, void (*kernel)(), uint32_t blocks) { faults().push_back({name, kernel, blocks}); }
};
#define PLANT_BLOCKS(name, blocks)                        \
  void name();                                            \
  const Register register_##name(#name, name, blocks);    \
  void name()
#define PLANT(name) PLANT_BLOCKS(name, 1)

// A pipe and one buffer of some floats.
struct Buffer {
  TPipe pipe;
  mutable TBuf<TPosition::VECCALC> buffer;  // GetWithOffset is not const
  explicit Buffer(uint32_t bytes = 64 << 10) { pipe.InitBuffer(buffer, bytes); }
  template <class T = float>
  LocalTensor<T> at(uint32_t byte, uint32_t count) const {
    return buffer.GetWithOffset<T>(count, byte);
  }
};
template <HardEvent e>
void meet() {
  SetFlag<e>(0);
  WaitFlag<e>(0);
}
void barrier() { PipeBarrier<PIPE_V>(); }
GlobalTensor<float> global(uint64_t size = 4096) {
  GlobalTensor<float> t;
  t.SetGlobalBuffer(memory, size);
  return t;
}
LocalTensor<float> filled(const Buffer& b, uint32_t byte, uint32_t count, float value = 1.0f) {
  const LocalTensor<float> t = b.at(byte, count);
  Duplicate(t, value, int32_t(count));
  barrier();
  return t;
}

// ---- operands ----

PLANT(unaligned_operand) {
  Buffer b;
  const auto x = filled(b, 0, 64), y = b.at(1024, 72);
  Adds(y[right ? 8 : 4], x, 1.0f, 32);
}
PLANT(buffer_over_capacity) { Buffer b(right ? 192 << 10 : (192 << 10) + 32); }
PLANT(operands_overlap) {
  Buffer b;
  const auto x = filled(b, 0, 128);
  Adds(x[right ? 64 : 8], x, 1.0f, 64);
}
PLANT(past_the_tensor) {
  Buffer b;
  filled(b, 0, 64);
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, right ? 64 : 65);
}
PLANT(vector_int64) {
  Buffer b;
  if (right) Add(b.at<int32_t>(0, 8), b.at<int32_t>(0, 8), b.at<int32_t>(0, 8), 8);
  else Add(b.at<int64_t>(0, 8), b.at<int64_t>(0, 8), b.at<int64_t>(0, 8), 8);
}
PLANT(vector_float64) {
  Buffer b;
  if (right) Muls(b.at<float>(0, 8), b.at<float>(0, 8), 2.0f, 8);
  else Muls(b.at<double>(0, 8), b.at<double>(0, 8), 2.0, 8);
}
PLANT(divide_int32) {
  Buffer b;
  if (right) Div(b.at(0, 8), b.at(0, 8), b.at(0, 8), 8);
  else Div(b.at<int32_t>(0, 8), b.at<int32_t>(0, 8), b.at<int32_t>(0, 8), 8);
}
PLANT(duplicate_int64) {
  Buffer b;
  if (right) Duplicate(b.at<int32_t>(0, 8), 1, 8);
  else Duplicate(b.at<int64_t>(0, 8), int64_t(1), 8);
}
PLANT(cast_that_does_not_exist) {
  Buffer b;
  filled(b, 0, 8);
  if (right) Cast(b.at<int64_t>(1024, 8), b.at<float>(0, 8), RoundMode::CAST_RINT, 8);
  else Cast(b.at<double>(1024, 8), b.at<float>(0, 8), RoundMode::CAST_RINT, 8);
}
PLANT(cast_without_rounding) {
  Buffer b;
  filled(b, 0, 8);
  Cast(b.at<int32_t>(0, 8), b.at<float>(0, 8), right ? RoundMode::CAST_FLOOR : RoundMode::CAST_NONE, 8);
}
PLANT(compare_count) {
  Buffer b;
  CompareScalar(b.at<uint8_t>(1024, 64), filled(b, 0, 64), 0.0f, CMPMODE::GT, right ? 64 : 56);
}
PLANT(compare_int32_order) {
  Buffer b;
  CompareScalar(b.at<uint8_t>(1024, 64), b.at<int32_t>(0, 64), 0, right ? CMPMODE::EQ : CMPMODE::GT, 64);
}
PLANT(select_int32) {
  Buffer b;
  if (right) Select(b.at(2048, 64), b.at<uint8_t>(1024, 64), b.at(0, 64), 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
  else Select(b.at<int32_t>(2048, 64), b.at<uint8_t>(1024, 64), b.at<int32_t>(0, 64), 0,
              SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
}
PLANT(select_mode) {
  Buffer b;
  Select(b.at(2048, 64), b.at<uint8_t>(1024, 64), b.at(0, 64), 0.0f,
         right ? SELMODE::VSEL_TENSOR_SCALAR_MODE : SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);
}
PLANT(select_reserve) {
  Buffer b(right ? 184 << 10 : 190 << 10);
  Select(b.at(2048, 64), b.at<uint8_t>(1024, 64), b.at(0, 64), 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
}
PLANT(gather_unaligned_offset) {
  Buffer b;
  Duplicate(b.at<uint32_t>(1024, 8), uint32_t(right ? 4 : 2), 8);
  barrier();
  Gather(b.at(2048, 8), b.at(0, 64), b.at<uint32_t>(1024, 8), 0, 8);
}
PLANT(gather_past_the_end) {
  Buffer b;
  Duplicate(b.at<uint32_t>(1024, 8), uint32_t(right ? 252 : 256), 8);
  barrier();
  Gather(b.at(2048, 8), b.at(0, 64), b.at<uint32_t>(1024, 8), 0, 8);
}
PLANT(gather_int64) {
  Buffer b;
  Duplicate(b.at<uint32_t>(1024, 8), uint32_t(0), 8);
  barrier();
  if (right) Gather(b.at<uint16_t>(2048, 8), b.at<uint16_t>(0, 64), b.at<uint32_t>(1024, 8), 0, 8);
  else Gather(b.at<int64_t>(2048, 8), b.at<int64_t>(0, 64), b.at<uint32_t>(1024, 8), 0, 8);
}
PLANT(reduce_without_room) {
  Buffer b;
  const auto x = filled(b, 0, 1024);
  ReduceSum(b.at(8192, 8), x, b.at(16384, right ? 16 : 8), 1024);
}
PLANT(maximum_without_room) {
  Buffer b;
  const auto x = filled(b, 0, 1024);
  ReduceMax(b.at(8192, 8), x, b.at(16384, right ? 32 : 16), 1024);
}
PLANT(index_over_what_vector_reads) {
  Buffer b;
  Adds(b.at<int32_t>(1024, 64), b.at<int32_t>(0, 64), int32_t(1), 64);
  if (right) meet<HardEvent::V_S>();
  else barrier();
  CreateVecIndex(b.at<int32_t>(0, 64), int32_t(0), 64);
}

// ---- sorting ----

PLANT(sort_too_many) {
  Buffer b(184 << 10);
  const uint32_t n = right ? 255 * 32 : 256 * 32;
  filled(b, 0, n);
  Duplicate(b.at<uint32_t>(32768, n), uint32_t(0), int32_t(n));
  barrier();
  Sort32(b.at(65536, 2 * n), b.at(0, n), b.at<uint32_t>(32768, n), int32_t(n / 32));
}
PLANT(sort_a_nan) {
  Buffer b;
  filled(b, 0, 32, right ? 1.0f : std::nanf(""));
  Duplicate(b.at<uint32_t>(1024, 32), uint32_t(0), 32);
  barrier();
  Sort32(b.at(2048, 64), b.at(0, 32), b.at<uint32_t>(1024, 32), 1);
}
void merge_two(const LocalTensor<float>& to, const LocalTensor<float>& a, const LocalTensor<float>& c, uint16_t n,
               uint16_t bits) {
  MrgSort4Info info;
  info.elementLengths[0] = info.elementLengths[1] = n;
  info.validBit = bits;
  MrgSort(to, {a, c, a, a}, info);
}
PLANT(merge_too_long) {
  Buffer b(184 << 10);
  const uint32_t n = right ? 4095 : 4096;
  filled(b, 0, 2 * n);
  merge_two(b.at(65536, 4 * n), b.at(0, 2 * n), b.at(0, 2 * n), uint16_t(n), 0b11);
}
PLANT(merge_unsorted) {
  Buffer b;
  filled(b, 0, 64);
  filled(b, 128, 32, right ? 0.5f : 2.0f);
  merge_two(b.at(2048, 256), b.at(0, 128), b.at(0, 128), 32, 0b11);
}
PLANT(merge_with_a_gap) {
  Buffer b;
  filled(b, 0, 64);
  merge_two(b.at(2048, 256), b.at(0, 64), b.at(0, 64), 32, right ? 0b11 : 0b101);
}
PLANT(merge_repeats_of_two) {
  Buffer b;
  filled(b, 0, 512);
  MrgSort4Info info;
  for (uint16_t& length : info.elementLengths) length = 32;
  info.validBit = right ? 0b1111 : 0b11;
  info.repeatTimes = 2;
  MrgSort(b.at(8192, 512), {b.at(0, 512), b.at(256, 64), b.at(512, 64), b.at(768, 64)}, info);
}
PLANT(merge_in_place) {
  Buffer b;
  filled(b, 0, 64);
  merge_two(b.at(right ? 2048 : 0, 256), b.at(0, 64), b.at(0, 64), 32, 0b11);
}

// ---- copies and bounds ----

PLANT(copy_of_a_part_of_a_block) {
  Buffer b;
  DataCopy(b.at(0, 64), global(), right ? 8 : 7);
}
PLANT(copy_too_many_blocks) {
  Buffer b;
  DataCopyPad(b.at(0, 64), global(), DataCopyExtParams{uint16_t(right ? 8 : 0), 32, 0, 0, 0},
              DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
}
PLANT(copy_to_unaligned) {
  Buffer b;
  DataCopyPad(b.at(0, 64)[right ? 8 : 1], global(), DataCopyExtParams{1, 32, 0, 0, 0},
              DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
}
PLANT(padding_too_wide) {
  Buffer b;
  DataCopyPad(b.at(0, 64), global(), DataCopyExtParams{1, 32, 0, 0, 0},
              DataCopyPadExtParams<float>{true, 0, uint8_t(right ? 8 : 9), 0.0f});
}
PLANT(read_past_the_global_tensor) {
  Buffer b;
  DataCopy(b.at(0, 64), global(right ? 64 : 63), 64);
}
PLANT(read_past_the_allocation) {
  Buffer b;
  DataCopy(b.at(0, 64), global(~uint64_t(0))[right ? 4032 : 4040], 64);
}
PLANT(write_past_the_allocation) {
  Buffer b;
  filled(b, 0, 64);
  meet<HardEvent::V_MTE3>();
  DataCopy(global(~uint64_t(0))[right ? 4032 : 4040], b.at(0, 64), 64);
}
PLANT(get_value_past_the_allocation) { global(~uint64_t(0)).GetValue(right ? 4095 : 4096); }

// ---- order between pipes ----

PLANT(no_flag_load_to_vector) {
  Buffer b;
  DataCopy(b.at(0, 64), global(), 64);
  if (right) meet<HardEvent::MTE2_V>();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
}
PLANT(wrong_flag_load_to_vector) {
  Buffer b;
  DataCopy(b.at(0, 64), global(), 64);
  if (right) meet<HardEvent::MTE2_V>();
  else meet<HardEvent::MTE2_MTE3>();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
}
PLANT(flag_before_the_load) {
  Buffer b;
  SetFlag<HardEvent::MTE2_V>(0);
  DataCopy(b.at(0, 64), global(), 64);
  WaitFlag<HardEvent::MTE2_V>(0);
  if (right) meet<HardEvent::MTE2_V>();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
}
PLANT(no_flag_vector_to_store) {
  Buffer b;
  filled(b, 0, 64);
  if (right) meet<HardEvent::V_MTE3>();
  DataCopy(global(), b.at(0, 64), 64);
}
PLANT(no_barrier_between_vectors) {
  Buffer b;
  Duplicate(b.at(0, 64), 1.0f, 64);
  if (right) barrier();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
}
PLANT(no_flag_vector_to_scalar) {
  Buffer b;
  filled(b, 0, 64);
  if (right) meet<HardEvent::V_S>();
  b.at(0, 64).GetValue(3);
}
PLANT(no_flag_load_to_scalar) {
  Buffer b;
  DataCopy(b.at(0, 64), global(), 64);
  if (right) meet<HardEvent::MTE2_S>();
  b.at(0, 64).GetValue(3);
}
PLANT(no_flag_scalar_to_vector) {
  Buffer b;
  b.at(0, 64).SetValue(3, 1.0f);
  if (right) meet<HardEvent::S_V>();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
}
PLANT(no_flag_scalar_to_store) {
  Buffer b;
  b.at(0, 64).SetValue(3, 1.0f);
  if (right) meet<HardEvent::S_MTE3>();
  DataCopy(global(), b.at(0, 64), 64);
}
PLANT(load_over_what_is_read) {
  Buffer b;
  DataCopy(b.at(0, 64), global(), 64);
  meet<HardEvent::MTE2_V>();
  Adds(b.at(1024, 64), b.at(0, 64), 1.0f, 64);
  if (right) meet<HardEvent::V_MTE2>();
  PipeBarrier<PIPE_MTE2>();
  DataCopy(b.at(0, 64), global(), 64);
}
PLANT(vector_over_what_is_stored) {
  Buffer b;
  filled(b, 0, 64);
  meet<HardEvent::V_MTE3>();
  DataCopy(global(), b.at(0, 64), 64);
  if (right) meet<HardEvent::MTE3_V>();
  Duplicate(b.at(0, 64), 2.0f, 64);
}
PLANT(load_what_is_being_stored) {
  Buffer b;
  filled(b, 0, 64);
  meet<HardEvent::V_MTE3>();
  DataCopy(global(), b.at(0, 64), 64);
  if (right) meet<HardEvent::MTE3_MTE2>();
  DataCopy(b.at(1024, 64), global(), 64);
}
PLANT(flag_never_waited_for) {
  Buffer b;
  SetFlag<HardEvent::V_MTE3>(0);
  if (right) WaitFlag<HardEvent::V_MTE3>(0);
}
PLANT(flag_never_set) {
  Buffer b;
  if (right) SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
}
PLANT(flag_set_twice) {
  Buffer b;
  SetFlag<HardEvent::V_MTE3>(0);
  if (right) WaitFlag<HardEvent::V_MTE3>(0);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
}
PLANT(fetched_event_kept) {
  Buffer b;
  constexpr HardEvent e = HardEvent::V_S;
  const int32_t kept = right ? GetTPipePtr()->AllocEventID<e>() : GetTPipePtr()->FetchEventID(e);
  SetFlag<e>(kept);
  const int32_t id = GetTPipePtr()->FetchEventID(e);
  SetFlag<e>(id);
  WaitFlag<e>(id);
  WaitFlag<e>(kept);
  if (right) GetTPipePtr()->ReleaseEventID<e>(kept);
}
PLANT(event_out_of_range) {
  Buffer b;
  SetFlag<HardEvent::V_MTE3>(right ? 7 : 8);
  WaitFlag<HardEvent::V_MTE3>(7);
}

// ---- queues ----

struct Queue {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  Queue() {
    pipe.InitBuffer(in, 2, 256);
    pipe.InitBuffer(out, 1, 256);
  }
  void load() {
    const auto t = in.AllocTensor<float>();
    DataCopy(t, global(), 64);
    in.EnQue(t);
  }
};
PLANT(queue_pipeline) {  // the right form of all below; the error is a result that nobody stores
  Queue q;
  for (int i = 0; i < 4; ++i) {
    q.load();
    auto x = q.in.DeQue<float>();
    const auto y = q.out.AllocTensor<float>();
    Adds(y, x, 1.0f, 64);
    q.in.FreeTensor(x);
    q.out.EnQue(y);
    if (!right && i == 3) return;
    auto z = q.out.DeQue<float>();
    DataCopy(global()[1024 + 64 * i], z, 64);
    q.out.FreeTensor(z);
  }
}
PLANT(queue_exhausted) {
  Queue q;
  const auto a = q.out.AllocTensor<float>();
  if (!right) q.out.AllocTensor<float>();
  q.out.EnQue(a);
  auto last = q.out.DeQue<float>();
  q.out.FreeTensor(last);
}
PLANT(queue_too_deep) {
  Queue q;
  q.load();
  if (!right) q.load();
  auto last = q.in.DeQue<float>();
  q.in.FreeTensor(last);
}
PLANT(queue_empty) {
  Queue q;
  if (right) q.load();
  auto last = q.in.DeQue<float>();
  q.in.FreeTensor(last);
}
PLANT(tensor_leaked) {
  Queue q;
  q.load();
  auto x = q.in.DeQue<float>();
  if (right) q.in.FreeTensor(x);
}
PLANT(tensor_freed_twice) {
  Queue q;
  q.load();
  auto x = q.in.DeQue<float>();
  q.in.FreeTensor(x);
  if (!right) q.in.FreeTensor(x);
}
PLANT(tensor_used_after_free) {
  Queue q;
  q.load();
  auto x = q.in.DeQue<float>();
  if (right) Adds(x, x, 1.0f, 64);
  q.in.FreeTensor(x);
  if (!right) Adds(x, x, 1.0f, 64);
}
PLANT(tensor_used_after_enqueue) {
  Queue q;
  const auto t = q.out.AllocTensor<float>();
  Duplicate(t, 1.0f, 64);
  q.out.EnQue(t);
  if (!right) Duplicate(t, 2.0f, 64);
  auto last = q.out.DeQue<float>();
  q.out.FreeTensor(last);
}

struct BoundQueue {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
  BoundQueue() { pipe.InitBuffer(queue, 2, 256); }
};
PLANT(bound_queue_waits_for_no_vector) {  // it orders the two copies, nothing else
  BoundQueue q;
  for (int i = 0; i < 3; ++i) {
    const auto t = q.queue.AllocTensor<float>();
    DataCopy(t, global(), 64);
    q.queue.EnQue(t);
    auto u = q.queue.DeQue<float>();
    if (!right) Adds(u, u, 1.0f, 64);
    DataCopy(global()[1024 + 64 * i], u, 64);
    q.queue.FreeTensor(u);
  }
}
PLANT(bound_queue_of_a_computed_tensor) {  // DeQue waits for a copy, not for the vector unit
  BoundQueue q;
  const auto t = q.queue.AllocTensor<float>();
  if (right) DataCopy(t, global(), 64);
  else Duplicate(t, 1.0f, 64);
  q.queue.EnQue(t);
  auto u = q.queue.DeQue<float>();
  DataCopy(global()[1024], u, 64);
  q.queue.FreeTensor(u);
}

// ---- global memory, the scalar cache and other cores ----

GlobalTensor<int64_t> shared_words() {
  GlobalTensor<int64_t> t;
  t.SetGlobalBuffer(words, 64);
  return t;
}
void clean(const GlobalTensor<int64_t>& t) {
  DataCacheCleanAndInvalid<int64_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(t);
}
PLANT(scalar_write_never_cleaned) {
  shared_words().SetValue(0, 1);
  if (right) clean(shared_words());
}
PLANT(copy_of_an_unclean_line) {
  Buffer b;
  shared_words().SetValue(0, 1);
  if (right) clean(shared_words());
  meet<HardEvent::S_MTE2>();
  DataCopy(b.at<int64_t>(0, 8), shared_words(), 8);
  clean(shared_words());
}
PLANT_BLOCKS(other_core_reads_unclean, 2) {
  if (GetBlockIdx() == 1) shared_words().SetValue(0, 1);
  if (right && GetBlockIdx() == 1) clean(shared_words());
  SyncAll();
  if (GetBlockIdx() == 0) shared_words().GetValue(0);
  clean(shared_words());
}
PLANT_BLOCKS(stale_line, 2) {
  if (GetBlockIdx() == 1) shared_words().GetValue(0);
  SyncAll();
  if (GetBlockIdx() == 0) shared_words().SetValue(0, shared_words().GetValue(1) + 77);
  if (GetBlockIdx() == 0) clean(shared_words());
  SyncAll();
  if (right) clean(shared_words());
  if (GetBlockIdx() == 1) shared_words().GetValue(0);
}
PLANT_BLOCKS(two_cores_one_line, 2) {
  shared_words().SetValue(GetBlockIdx() * (right ? 8 : 1), 1);
  SyncAll();
  clean(shared_words()[GetBlockIdx() * (right ? 8 : 1)]);
}
PLANT_BLOCKS(race_between_blocks, 2) {
  Buffer b;
  if (GetBlockIdx() == 0) {
    filled(b, 0, 64);
    meet<HardEvent::V_MTE3>();
    DataCopy(global(), b.at(0, 64), 64);
  }
  if (right) SyncAll();
  if (GetBlockIdx() == 1) DataCopy(b.at(0, 64), global(), 64);
}
PLANT_BLOCKS(two_cores_write_one_block, 2) {
  host::whole_blocks = true;
  Buffer b;
  filled(b, 0, 8);
  meet<HardEvent::V_MTE3>();
  const uint32_t first = right ? 8 : 4;  // words of the other core start there
  const DataCopyExtParams shape{1, first * 4, 0, 0, 0};
  DataCopyPad(global()[uint64_t(GetBlockIdx() * first)], b.at(0, 8), shape);
}
PLANT_BLOCKS(write_over_what_another_reads, 2) {
  Buffer b;
  if (GetBlockIdx() == 0) DataCopy(b.at(0, 64), global(), 64);
  if (right) SyncAll();
  if (GetBlockIdx() == 1) {
    filled(b, 0, 64);
    meet<HardEvent::V_MTE3>();
    DataCopy(global(), b.at(0, 64), 64);
  }
}
PLANT_BLOCKS(block_misses_the_meeting, 3) {
  if (right || GetBlockIdx() != 2) SyncAll();
}
PLANT_BLOCKS(more_blocks_than_cores, 41) {
  if (!right) SyncAll();
}

}  // namespace

int main(int argc, char** argv) {
  for (const Fault& fault : faults()) {
    if (argc < 3) {
      std::puts(fault.name);
      continue;
    }
    if (std::strcmp(fault.name, argv[1]) != 0) continue;
    right = std::atoi(argv[2]) != 0;
    host::add_memory(memory, sizeof memory);
    host::add_memory(words, sizeof words);
    try {
      host::launch(fault.blocks, fault.kernel);
    } catch (const host::Fault& caught) {
      std::puts(caught.what());
      return 1;
    }
    return 0;
  }
  return argc < 3 ? 0 : 2;
}
