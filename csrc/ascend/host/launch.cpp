// Launches through the stubs that `ascendc_library` generates: they copy a by-value parameter from where the pointer
// points before they return.
#include "ascend/host/launch.h"

#include "dspark_stubs.h"  // written by CMakeLists.txt: the header of every stub

namespace dspark::ascend {
namespace {

constexpr int64_t kResidentKeys = 3584, kLanes = 64;  // device.h: kSlot, kLanes
constexpr int64_t kSpanGrain = 512;                   // moves.h
constexpr int64_t kLeastTile = 8;                     // requests.h

template <class Params>
int64_t one_block(const Params&, int64_t) {
  return 1;
}
int64_t survival_blocks(const SurvivalParams& p, int64_t cores) {
  return clamp64((p.batch + kLanes - 1) / kLanes, 1, cores);
}
// Eights of requests: the fewest whose int32 rows, of any width, fill whole 32-byte blocks.
template <class Params>
int64_t request_blocks(const Params& p, int64_t cores) {
  return clamp64((p.batch + kLeastTile - 1) / kLeastTile, 1, cores);
}
// 256 rows a core: fewer would not pay for the sums that each core makes.
int64_t row_blocks(const RaggedLayoutParams& p, int64_t cores) { return clamp64((p.rows + 255) / 256, 1, cores); }
// 128 entries of one table a core, for each may cost a copy of its own.
int64_t entry_blocks(const CompressorLayoutParams& p, int64_t cores) {
  const int64_t tables = p.tables > 1 ? 2 : 1, other = p.table[tables - 1].capacity;
  return clamp64((max64(p.table[0].capacity, other) + 127) / 128 * tables, tables, cores);
}
int64_t scatter_blocks(const MoveRowsParams& p, int64_t cores) {
  return clamp64((p.batch * p.width * p.row_bytes + kSpanGrain - 1) / kSpanGrain, 1, cores);
}
int64_t gather_blocks(const MoveRowsParams& p, int64_t cores) {
  return clamp64((p.rows * p.row_bytes + kSpanGrain - 1) / kSpanGrain, 1, cores);
}

}  // namespace

size_t planning_workspace(int64_t batch, int64_t gamma) {
  const int64_t keys = (batch + kLanes - 1) / kLanes * kLanes * gamma;
  return keys <= kResidentKeys ? 0 : size_t(keys) * sizeof(float);
}

#define DSPARK_LAUNCH(stem, Params, blocks)                                                                 \
  uint32_t stem(const Params& p, void* workspace, Stream stream) {                                          \
    Params params = p;                                                                                      \
    return aclrtlaunch_dspark_##stem(uint32_t(blocks(p, stream.cores)), stream.handle, workspace, &params); \
  }
DSPARK_ASCEND_OPERATORS(DSPARK_LAUNCH)
#undef DSPARK_LAUNCH

}  // namespace dspark::ascend
