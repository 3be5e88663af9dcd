// A fake runtime: records what each launch hands to the stubs that CANN would generate, and returns an error.
#include "ascend/host/launch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "dspark_stubs.h"

namespace {

struct Seen {
  const char* kernel;
  uint32_t blocks;
  void *stream, *workspace;
  unsigned char params[sizeof(dspark::AllocateParams)];
} seen;
constexpr uint32_t kError = 507;

template <class P>
uint32_t record(const char* kernel, uint32_t blocks, void* stream, void* workspace, const P* params) {
  seen = {kernel, blocks, stream, workspace, {}};
  std::memcpy(seen.params, params, sizeof(P));
  return kError;
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s: %s\n", seen.kernel ? seen.kernel : "no launch", what);
  std::exit(1);
}

template <class P>
using Launch = uint32_t (*)(const P&, void*, dspark::ascend::Stream);

// Every byte of the parameters arrives, at the right kernel, with the stream and the workspace as they were.
template <class P>
void check(const char* kernel, Launch<P> launch, P params) {
  static char stream, scratch;
  expect(launch(params, &scratch, {&stream, 48}) == kError, "the runtime's error is returned");
  expect(std::strcmp(seen.kernel, kernel) == 0, "the right kernel");
  expect(seen.stream == &stream, "the stream");
  expect(seen.workspace == &scratch, "the workspace");
  expect(std::memcmp(seen.params, &params, sizeof(P)) == 0, "the parameters");
  expect(seen.blocks >= 1 && seen.blocks <= 48, "no more blocks than cores");
}

template <class P>
void check_blocks(Launch<P> launch, const P& params, uint32_t cores, uint32_t blocks) {
  launch(params, nullptr, {nullptr, cores});
  expect(seen.blocks == blocks, "the number of blocks");
}

// Small numbers, so that products of sizes stay in range.
template <class P>
P patterned() {
  P params;
  auto* bytes = reinterpret_cast<unsigned char*>(&params);
  for (size_t i = 0; i < sizeof(P); ++i) bytes[i] = i % 8 < 2 ? (unsigned char)(i * 37 + 11) : 0;
  return params;
}

// A count of tables that the host side walks through.
template <class P>
void bound(P&) {}
void bound(dspark::CompressorLayoutParams& p) { p.tables = 2; }

}  // namespace

#define FAKE_STUB(stem, Params, unused)                                                 \
  uint32_t aclrtlaunch_dspark_##stem(uint32_t b, void* s, void* w, dspark::Params* p) { \
    return record(#stem, b, s, w, p);                                                   \
  }
DSPARK_ASCEND_OPERATORS(FAKE_STUB)

int main() {
  using namespace dspark;
#define CHECK(stem, Params, unused)                 \
  {                                                 \
    Params params = patterned<Params>();            \
    bound(params);                                  \
    check<Params>(#stem, ascend::stem, params);     \
  }
  DSPARK_ASCEND_OPERATORS(CHECK)
  const std::pair<int64_t, uint32_t> sizes[] = {{0, 1}, {1, 1}, {64, 1}, {65, 2}, {256, 4}, {9000, 40}};
  for (const auto& [batch, blocks] : sizes) {
    SurvivalParams params = patterned<SurvivalParams>();
    params.batch = batch;
    check_blocks<SurvivalParams>(ascend::prefix_survival, params, 40, blocks);
  }
  check_blocks<PlanBudgetParams>(ascend::plan_budget, patterned<PlanBudgetParams>(), 40, 1);
  check_blocks<ScheduleParams>(ascend::schedule_verify_lens, patterned<ScheduleParams>(), 40, 1);
  check_blocks<AllocateParams>(ascend::allocate_verify_lens, patterned<AllocateParams>(), 40, 1);
  for (const auto& [batch, blocks] : {std::pair<int64_t, uint32_t>{0, 1}, {8, 1}, {9, 2}, {256, 32}, {9000, 48}}) {
    AcceptParams accept = patterned<AcceptParams>();
    UpdateOffsetParams update = patterned<UpdateOffsetParams>();
    MaxSafeVerifyLenParams safe = patterned<MaxSafeVerifyLenParams>();
    accept.batch = update.batch = safe.batch = batch;
    check_blocks<AcceptParams>(ascend::accept_greedy, accept, 48, blocks);
    check_blocks<AcceptParams>(ascend::finalize_accept, accept, 48, blocks);
    check_blocks<UpdateOffsetParams>(ascend::update_offset, update, 48, blocks);
    check_blocks<MaxSafeVerifyLenParams>(ascend::max_safe_verify_len, safe, 48, blocks);
  }
  for (const auto& [batch, blocks] : {std::pair<int64_t, uint32_t>{0, 1}, {8, 1}, {9, 2}, {9000, 48}}) {
    StateRowsParams rows = patterned<StateRowsParams>();
    StateBlocksParams table = patterned<StateBlocksParams>();
    rows.batch = table.batch = batch;
    check_blocks<StateRowsParams>(ascend::state_rows, rows, 48, blocks);
    check_blocks<StateBlocksParams>(ascend::state_blocks, table, 48, blocks);
  }
  for (const auto& [size, rows, entries] :
       {std::tuple<int64_t, uint32_t, uint32_t>{0, 1, 2}, {128, 1, 2}, {257, 2, 6}, {100'000, 48, 48}}) {
    RaggedLayoutParams ragged = patterned<RaggedLayoutParams>();
    CompressorLayoutParams layout = patterned<CompressorLayoutParams>();
    ragged.rows = layout.table[1].capacity = size;
    layout.tables = 2, layout.table[0].capacity = 0;
    check_blocks<RaggedLayoutParams>(ascend::ragged_layout, ragged, 48, rows);
    check_blocks<CompressorLayoutParams>(ascend::compressor_layout, layout, 48, entries);
    layout.tables = 1;
    check_blocks<CompressorLayoutParams>(ascend::compressor_layout, layout, 48, 1);
  }
  check_blocks<PadToBucketParams>(ascend::pad_to_bucket, patterned<PadToBucketParams>(), 48, 1);
  // A core for each 512 bytes of the destination: 24 rows of a scatter, 100 of a gather.
  for (const auto& [row_bytes, scatter, gather] :
       {std::tuple<int64_t, uint32_t, uint32_t>{0, 1, 1}, {1, 1, 1}, {22, 2, 5}, {400'000, 48, 48}}) {
    MoveRowsParams move = patterned<MoveRowsParams>();
    move.batch = 3, move.width = 8, move.rows = 100, move.row_bytes = row_bytes;
    check_blocks<MoveRowsParams>(ascend::scatter_to_strided, move, 48, scatter);
    check_blocks<MoveRowsParams>(ascend::gather_from_strided, move, 48, gather);
  }
  expect(ascend::planning_workspace(512, 7) == 0, "512 requests of 7 drafts need no workspace");
  expect(ascend::planning_workspace(513, 7) == 576 * 7 * 4, "513 do");
  return 0;
}
