// The clocks, the owners of the unified buffer and the events of one core.
#include "ascendc_on_host/machine.h"

#include <cstdio>

namespace ascendc_on_host {
namespace {
const char* const kNames[] = {"S", "V", "MTE2", "MTE3"};
}

int poison = 0xff;

void fault(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Fault(std::string("ascendc_on_host: ") + text);
}

Core::Core(Machine& machine, int block, int blocks)
    : machine_(machine), block_(block), blocks_(blocks), cells_(kBlocks), owners_(kBlocks) {
  std::memset(buffer_, poison, sizeof buffer_);
}

void Core::issue(Pipe pipe, const char* name, std::initializer_list<Access> operands) {
  const uint32_t number = ++issued_[pipe];
  // The scalar unit dispatches every instruction: what it has waited for is over when it does.
  for (int p = kVector; p < kPipes; ++p) known_[pipe][p] = std::max(known_[pipe][p], known_[kScalar][p]);
  known_[kScalar][kScalar] = issued_[kScalar];
  for (const Access& a : operands) {
    if (a.offset + uint64_t(a.bytes) > kBufferBytes) fault("%s: outside the unified buffer", name);
    if (a.bytes == 0) continue;
    for (uint32_t b = a.offset / kBlock; b <= (a.offset + a.bytes - 1) / kBlock; ++b) {
      const Cell& cell = cells_[b];
      if (cell.number && known_[pipe][cell.pipe] < cell.number)
        fault("%s on pipe %s %s what pipe %s wrote, with no flag or barrier between", name, kNames[pipe],
              a.writes ? "overwrites" : "reads", kNames[cell.pipe]);
      // A scalar read is over before anything later is dispatched, and a pipe reads in order.
      for (int p = kVector; a.writes && p < kPipes; ++p)
        if (p != pipe && cell.read[p] > known_[pipe][p])
          fault("%s on pipe %s overwrites what pipe %s still reads, with no flag between", name, kNames[pipe],
                kNames[p]);
    }
  }
  for (const Access& a : operands) {
    if (a.bytes == 0) continue;
    for (uint32_t b = a.offset / kBlock; b <= (a.offset + a.bytes - 1) / kBlock; ++b) {
      if (a.writes) cells_[b] = {number, uint8_t(pipe), {}};
      else cells_[b].read[pipe] = number;
    }
  }
}

void Core::issue_vector(const char* name, uint64_t repeats, std::initializer_list<Access> operands) {
  issue(kVector, name, operands);
  ++counters.vector_instructions;
  counters.vector_repeats += int64_t(repeats);
}

void Core::set_flag(Pipe from, Pipe to, int id) {
  if (id < 0 || id >= kEvents) fault("SetFlag: event %d, there are %d", id, kEvents);
  Flag& flag = flags_[from][to][id];
  if (flag.is_set) fault("SetFlag: %s_%s event %d is set already", kNames[from], kNames[to], id);
  flag.is_set = true;
  flag.clock = known_[from];
  for (int p = kVector; p < kPipes; ++p) flag.clock[p] = std::max(flag.clock[p], known_[kScalar][p]);
  flag.clock[from] = issued_[from];
  ++counters.flags;
}

void Core::wait_flag(Pipe from, Pipe to, int id) {
  if (id < 0 || id >= kEvents) fault("WaitFlag: event %d, there are %d", id, kEvents);
  Flag& flag = flags_[from][to][id];
  if (!flag.is_set) fault("WaitFlag: %s_%s event %d was never set, the core would hang", kNames[from], kNames[to], id);
  flag.is_set = false;
  for (int p = 0; p < kPipes; ++p) known_[to][p] = std::max(known_[to][p], flag.clock[p]);
}

// The first event that is not occupied, whether or not its flag is set.
int Core::fetch_event(Pipe from, Pipe to) const {
  for (int i = 0; i < kEvents; ++i)
    if (!occupied_[from][to][i]) return i;
  fault("FetchEventID: all %s_%s events are in use", kNames[from], kNames[to]);
}

int Core::alloc_event(Pipe from, Pipe to) {
  const int id = fetch_event(from, to);
  occupied_[from][to][id] = true;
  return id;
}

void Core::release_event(Pipe from, Pipe to, int id) {
  if (id < 0 || id >= kEvents || !occupied_[from][to][id])
    fault("ReleaseEventID: %s_%s event %d is not occupied", kNames[from], kNames[to], id);
  occupied_[from][to][id] = false;
}

void Core::barrier(int pipe) {
  ++counters.barriers;
  if (pipe != kPipes) known_[pipe][pipe] = issued_[pipe];
  else known_.fill(issued_);
}

uint32_t Core::allocate(uint32_t bytes) {
  const uint32_t offset = allocated_;
  if (bytes % kBlock) bytes += kBlock - bytes % kBlock;
  if (allocated_ + uint64_t(bytes) > kBufferBytes)
    fault("InitBuffer: %u bytes asked for, %u of %u are left", bytes, kBufferBytes - allocated_, kBufferBytes);
  allocated_ += bytes;
  return offset;
}

void Core::own(uint32_t offset, uint32_t bytes, uint32_t ticket) {
  for (uint32_t b = offset / kBlock; b < (offset + bytes + kBlock - 1) / kBlock; ++b) owners_[b] = ticket;
}

void Core::check_owner(const char* name, uint32_t offset, uint32_t bytes, uint32_t ticket) const {
  if (bytes == 0) return;
  if (owners_[offset / kBlock] != ticket || owners_[(offset + bytes - 1) / kBlock] != ticket)
    fault("%s: the tensor was freed or handed on", name);
}

void Core::finish() {
  if (held_) fault("end of kernel: %d tensors of a queue were not freed", held_);
  for (int from = 0; from < kPipes; ++from)
    for (int to = 0; to < kPipes; ++to)
      for (int id = 0; id < kEvents; ++id)
        if (flags_[from][to][id].is_set)
          fault("end of kernel: %s_%s event %d was set and never waited for", kNames[from], kNames[to], id);
  for (const auto& [address, line] : cache_)
    if (line.dirty) fault("end of kernel: a SetValue to global memory was never cleaned out of the scalar cache");
}

}  // namespace ascendc_on_host
