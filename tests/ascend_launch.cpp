// A fake runtime: records what each launch hands to the stubs that CANN would generate, and returns an error.
#include "ascend/host/launch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "aclrtlaunch_dspark_allocate_verify_lens.h"
#include "aclrtlaunch_dspark_plan_budget.h"
#include "aclrtlaunch_dspark_prefix_survival.h"
#include "aclrtlaunch_dspark_schedule_verify_lens.h"

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

// Every byte of the parameters arrives, at the right kernel, with the stream and the workspace as they were.
template <class P>
void check(const char* kernel, uint32_t (*launch)(const P&, void*, void*), P params, uint32_t blocks, bool workspace) {
  static char stream, scratch;
  expect(launch(params, &scratch, &stream) == kError, "the runtime's error is returned");
  expect(std::strcmp(seen.kernel, kernel) == 0, "the right kernel");
  expect(seen.blocks == blocks, "the number of blocks");
  expect(seen.stream == &stream, "the stream");
  expect(!workspace || seen.workspace == &scratch, "the workspace");
  expect(std::memcmp(seen.params, &params, sizeof(P)) == 0, "the parameters");
}

template <class P>
P patterned() {
  P params;
  auto* bytes = reinterpret_cast<unsigned char*>(&params);
  for (size_t i = 0; i < sizeof(P); ++i) bytes[i] = (unsigned char)(i * 37 + 11);
  return params;
}

}  // namespace

uint32_t aclrtlaunch_dspark_prefix_survival(uint32_t b, void* s, dspark::SurvivalParams* p) {
  return record("prefix_survival", b, s, nullptr, p);
}
uint32_t aclrtlaunch_dspark_plan_budget(uint32_t b, void* s, void* w, dspark::PlanBudgetParams* p) {
  return record("plan_budget", b, s, w, p);
}
uint32_t aclrtlaunch_dspark_schedule_verify_lens(uint32_t b, void* s, void* w, dspark::ScheduleParams* p) {
  return record("schedule_verify_lens", b, s, w, p);
}
uint32_t aclrtlaunch_dspark_allocate_verify_lens(uint32_t b, void* s, void* w, dspark::AllocateParams* p) {
  return record("allocate_verify_lens", b, s, w, p);
}

int main() {
  using namespace dspark;
  const std::pair<int64_t, uint32_t> sizes[] = {{0, 1}, {1, 1}, {64, 1}, {65, 2}, {256, 4}, {9000, 40}};
  for (const auto& [batch, blocks] : sizes) {
    SurvivalParams params = patterned<SurvivalParams>();
    params.batch = batch;
    check("prefix_survival", ascend::prefix_survival, params, blocks, false);
  }
  check("plan_budget", ascend::plan_budget, patterned<PlanBudgetParams>(), 1, true);
  check("schedule_verify_lens", ascend::schedule_verify_lens, patterned<ScheduleParams>(), 1, true);
  check("allocate_verify_lens", ascend::allocate_verify_lens, patterned<AllocateParams>(), 1, true);
  expect(ascend::planning_workspace(512, 7) == 0, "512 requests of 7 drafts need no workspace");
  expect(ascend::planning_workspace(513, 7) == 576 * 7 * 4, "513 do");
  return 0;
}
