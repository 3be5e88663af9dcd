// Qualifiers, types, enumerations and synchronisation.
#pragma once
#include <cstdint>

#include "ascendc_on_host/machine.h"

#define __aicore__
#define __global__
#define __gm__
#define GM_ADDR uint8_t*
#define KERNEL_TASK_TYPE_DEFAULT(type)

using half = struct HalfBits { uint16_t bits; };
using bfloat16_t = struct BFloat16Bits { uint16_t bits; };

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };

namespace AscendC {

enum class TPosition { VECIN, VECOUT, VECCALC };
enum class HardEvent {
  MTE2_V, V_MTE2, V_MTE3, MTE3_V, MTE2_S, S_MTE2, S_V, V_S, S_MTE3, MTE3_S, MTE2_MTE3, MTE3_MTE2
};
enum class CMPMODE { LT, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class CacheLine { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT };

namespace host = ascendc_on_host;

struct PipePair {
  host::Pipe from, to;
};
constexpr PipePair pipes_of(HardEvent e) {
  using namespace ascendc_on_host;
  constexpr PipePair pairs[] = {{kLoad, kVector},   {kVector, kLoad},   {kVector, kStore}, {kStore, kVector},
                                {kLoad, kScalar},   {kScalar, kLoad},   {kScalar, kVector}, {kVector, kScalar},
                                {kScalar, kStore},  {kStore, kScalar},  {kLoad, kStore},   {kStore, kLoad}};
  return pairs[int(e)];
}

template <HardEvent e>
void SetFlag(int32_t id) {
  host::core().set_flag(pipes_of(e).from, pipes_of(e).to, id);
}
template <HardEvent e>
void WaitFlag(int32_t id) {
  host::core().wait_flag(pipes_of(e).from, pipes_of(e).to, id);
}
template <pipe_t p>
void PipeBarrier() {
  if (p != PIPE_S) host::core().barrier(p == PIPE_ALL ? int(host::kPipes) : int(p));
}

inline int64_t GetBlockIdx() { return host::core().block(); }
inline int64_t GetBlockNum() { return host::core().blocks(); }
inline void SyncAll() { host::core().sync_all(); }

}  // namespace AscendC
