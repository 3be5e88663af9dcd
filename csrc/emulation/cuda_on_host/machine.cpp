// Runs a grid: block after block, each thread of a block as a fiber, switched at barriers and meetings only.
#include <string.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <vector>

#include "cuda_on_host/launch.h"
#include "cuda_on_host/machine.h"
#include "fiber.h"
#include "races.h"
#include "shared_memory.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_on_host {

unsigned linear_thread;
unsigned char* dynamic_shared;

Options& options() {
  static Options o;
  return o;
}

uint64_t& launches() {
  static uint64_t count = 0;
  return count;
}

namespace {

enum class State { ready, at_barrier, at_meeting, done };

// Lanes that meet under one mask. Values are kept twice: a lane may be at the next meeting before the last has read.
struct Meeting {
  unsigned mask = 0;
  int arrived = 0;
  uint64_t round = 0;
  Site site{};
  uint64_t values[2][32];
};

struct Thread {
  Fiber fiber;
  uint3 index;
  State state;
  Site site;  // of the barrier it waits at
  Meeting* meeting;
  uint64_t round;  // of the meeting it waits for
  Moment moment;
};

struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;  // kept between launches: a stack is costly to make
  size_t count = 0;
  std::vector<std::vector<std::unique_ptr<Meeting>>> warps;
  Thread* running = nullptr;
  const std::function<void()>* body = nullptr;
  std::string error;
  std::vector<size_t> order;
};
Machine machine;

std::string text(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }
bool same(Site a, Site b) { return a.line == b.line && strcmp(a.file, b.file) == 0; }

void thread_main() {
  try {
    (*machine.body)();
  } catch (const std::exception& e) {
    machine.error = e.what();
  }
  machine.running->state = State::done;
  machine.running->fiber.suspend(true);
}

void wait(State state) {
  machine.running->state = state;
  machine.running->fiber.suspend();
}

void check_error() {
  if (machine.error.empty()) return;
  const uint3 b = blockIdx;
  throw Fault(machine.error + " [block " + std::to_string(b.x) + "," + std::to_string(b.y) + "," + std::to_string(b.z) +
              " thread " + std::to_string(linear_thread) + "]");
}

// Runs each thread that can go on; false if there is none.
bool run_ready() {
  bool ran = false;
  for (size_t i : machine.order) {
    Thread& t = *machine.threads[i];
    if (t.state == State::at_meeting && t.meeting->round != t.round) t.state = State::ready;
    if (t.state != State::ready) continue;
    ran = true;
    machine.running = &t;
    threadIdx = t.index;
    linear_thread = unsigned(i);
    now = &t.moment;
    t.fiber.resume();
    now = nullptr;
    check_error();
  }
  return ran;
}

// Nobody can go on: all wait at one barrier and pass it, or all are done (true), or the block hangs.
bool pass_barrier() {
  size_t done = 0, waiting = 0;
  Site site{}, other{};
  for (size_t i = 0; i < machine.count; ++i) {
    const Thread& t = *machine.threads[i];
    done += t.state == State::done;
    if (t.state != State::at_barrier) continue;
    if (waiting++ == 0) site = t.site;
    else if (!same(t.site, site)) other = t.site;
  }
  if (done == machine.count) return true;
  if (done + waiting < machine.count)
    throw Fault("deadlock: " + std::to_string(waiting) + " threads at a barrier, " + std::to_string(done) + " done, " +
                std::to_string(machine.count - waiting - done) + " wait for lanes of their warp");
  if (done > 0) throw Fault("barrier at " + text(site) + " that some threads never reach: they have ended");
  if (other.file) throw Fault("divergent barrier: threads wait at " + text(site) + " and " + text(other));
  for (size_t i = 0; i < machine.count; ++i) {
    machine.threads[i]->state = State::ready;
    ++machine.threads[i]->moment.barriers;
  }
  return false;
}

void run_block(const cudaLaunchConfig_t& config, uint3 block, std::mt19937_64& random) {
  const dim3 size = config.blockDim, grid = config.gridDim;
  blockIdx = block;
  const uint32_t number = block.x + grid.x * (block.y + grid.y * block.z);
  machine.warps.clear();
  machine.warps.resize((machine.count + 31) / 32);
  machine.order.resize(machine.count);
  for (unsigned i = 0; i < machine.count; ++i) {
    Thread& t = *machine.threads[i];
    t.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    t.state = State::ready;
    t.moment = {uint32_t(number * machine.count + i + 1), number, i / 32, 0, 0};
    t.fiber.prepare(thread_main);
    machine.order[i] = i;
  }
  do {
    do {
      if (options().shuffle) std::shuffle(machine.order.begin(), machine.order.end(), random);
    } while (run_ready());
  } while (!pass_barrier());
}

Meeting& meeting_of(std::vector<std::unique_ptr<Meeting>>& meetings, unsigned mask) {
  for (const auto& m : meetings)
    if (m->mask == mask) return *m;
  meetings.emplace_back(new Meeting);
  meetings.back()->mask = mask;
  return *meetings.back();
}

std::unordered_map<const void*, int>& allowed() {
  static std::unordered_map<const void*, int> bytes;
  return bytes;
}

bool fits(const void* kernel, const cudaLaunchConfig_t& c) {
  const auto nonzero = [](dim3 d) { return d.x > 0 && d.y > 0 && d.z > 0; };
  const size_t threads = size_t(c.blockDim.x) * c.blockDim.y * c.blockDim.z;
  if (!nonzero(c.gridDim) || !nonzero(c.blockDim) || threads > 1024 || c.blockDim.z > 64) return false;
  if (c.gridDim.x > 0x7fffffffu || c.gridDim.y > 65535 || c.gridDim.z > 65535) return false;
  const auto found = allowed().find(kernel);
  const size_t limit = std::max(size_t(48) << 10, found == allowed().end() ? 0 : size_t(found->second));
  return c.dynamicSmemBytes <= std::min(limit, options().shared_limit);
}

}  // namespace

void fail(const char* message) {
  machine.error = message;
  machine.running->fiber.suspend(true);
  abort();
}

bool is_private(const void* address) { return machine.running->fiber.owns(address); }

void block_barrier(Site site) {
  machine.running->site = site;
  wait(State::at_barrier);
}

const uint64_t* meet(unsigned mask, const void* value, size_t bytes, bool orders, Site site) {
  Thread& self = *machine.running;
  const unsigned lane = linear_thread % 32;
  if (!(mask >> lane & 1)) fail("a lane takes part in a warp operation whose mask leaves it out");
  Meeting& m = meeting_of(machine.warps[linear_thread / 32], mask);
  if (m.arrived > 0 && !same(m.site, site)) {
    machine.error = "lanes of one warp meet at different places: " + text(site) + " and " + text(m.site);
    self.fiber.suspend(true);
  }
  m.site = site;
  uint64_t* values = m.values[m.round % 2];
  values[lane] = 0;
  if (bytes > 0) memcpy(values + lane, value, bytes);
  if (++m.arrived == __builtin_popcount(mask)) {
    m.arrived = 0;
    ++m.round;
  } else {
    self.meeting = &m;
    self.round = m.round;
    wait(State::at_meeting);
  }
  if (orders && mask == 0xffffffffu) ++self.moment.warp_syncs;
  return values;
}

void allow_shared(const void* kernel, int bytes) { allowed()[kernel] = bytes; }

cudaError_t run(const void* kernel, const cudaLaunchConfig_t& config, const std::function<void()>& body) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  if (!fits(kernel, config)) return cudaErrorInvalidConfiguration;
  machine.count = size_t(config.blockDim.x) * config.blockDim.y * config.blockDim.z;
  while (machine.threads.size() < machine.count) machine.threads.emplace_back(new Thread);
  machine.body = &body;
  machine.error.clear();
  ++launches();
  forget_accesses();
  SharedMemory shared(config.dynamicSmemBytes);
  blockDim = config.blockDim;
  gridDim = config.gridDim;
  dynamic_shared = shared.data();
  std::mt19937_64 random(options().seed);
  for (unsigned z = 0; z < config.gridDim.z; ++z)
    for (unsigned y = 0; y < config.gridDim.y; ++y)
      for (unsigned x = 0; x < config.gridDim.x; ++x) {
        shared.refill(options().poison);
        run_block(config, {x, y, z}, random);
      }
  return cudaSuccess;
}

}  // namespace cuda_on_host

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
  }
  return "unrecognized error code";
}
