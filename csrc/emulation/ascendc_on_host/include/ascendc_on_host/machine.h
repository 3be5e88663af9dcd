// One emulated vector core: unified buffer, what each pipe knows of the others, scalar cache, events, counters.
//
// Pipes run ahead of each other, so an operand is safe only if a flag, a barrier or a queue orders the two uses. Every
// instruction of a pipe has a number; a pipe remembers up to which number of each other pipe it has waited, directly or
// through others (a vector clock); each 32-byte block of the unified buffer remembers who wrote and who read it last.
#pragma once
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ascendc_on_host {

enum Pipe : int { kScalar, kVector, kLoad, kStore, kPipes };  // S, V, MTE2, MTE3

constexpr uint32_t kBufferBytes = 192 << 10, kBlock = 32, kBlocks = kBufferBytes / kBlock, kRepeat = 256, kLine = 64;
constexpr uint32_t kSelectReserve = 8 << 10;  // at the end of the unified buffer, used by Select with a tensor mask
constexpr int kEvents = 8, kVectorCores = 40;

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

// What a launch did, summed over its blocks.
struct Counters {
  int64_t vector_instructions, vector_repeats, gathers, sorts;
  int64_t scalar_reads, scalar_writes, scalar_gm_reads, scalar_gm_writes;
  int64_t loads, load_bytes, stores, store_bytes, flags, barriers, launches, blocks;
};

struct Access {
  uint32_t offset, bytes;
  bool writes;
};

using Clock = std::array<uint32_t, kPipes>;

// Global memory that a launch may touch, and who wrote each 4-byte word of it.
struct Memory {
  uintptr_t begin;
  size_t bytes;
  struct Word {
    uint32_t number;
    uint16_t core, epoch;  // of the last writer; epoch 0: never written
    uint8_t pipe;
    uint16_t reader, reader_epoch;
  };
  std::vector<Word> words;  // empty until the first write
};

class Machine;

class Core {
 public:
  Core(Machine& machine, int block, int blocks);

  int block() const { return block_; }
  int blocks() const { return blocks_; }
  uint8_t* at(uint32_t offset) { return buffer_ + offset; }

  // Orders one instruction of a pipe against all earlier uses of its operands.
  void issue(Pipe pipe, const char* name, std::initializer_list<Access> operands);
  void issue_vector(const char* name, uint64_t repeats, std::initializer_list<Access> operands);

  void set_flag(Pipe from, Pipe to, int id);
  void wait_flag(Pipe from, Pipe to, int id);
  int fetch_event(Pipe from, Pipe to) const;
  int alloc_event(Pipe from, Pipe to);
  void release_event(Pipe from, Pipe to, int id);
  void barrier(int pipe);  // kPipes: all

  // The unified buffer. A ticket names the present owner of a range.
  uint32_t allocate(uint32_t bytes);
  uint32_t allocated() const { return allocated_; }
  void own(uint32_t offset, uint32_t bytes, uint32_t ticket);
  uint32_t new_ticket() { return ++tickets_; }
  void check_owner(const char* name, uint32_t offset, uint32_t bytes, uint32_t ticket) const;

  // Global memory through the scalar unit's cache, and through the copy pipes.
  void load_scalar(uintptr_t address, void* value, size_t bytes);
  void store_scalar(uintptr_t address, const void* value, size_t bytes);
  void clean(uintptr_t address, bool whole_cache);
  void copy_in(uintptr_t address, uint32_t offset, size_t bytes);
  void copy_out(uint32_t offset, uintptr_t address, size_t bytes);
  bool has_dirty(uintptr_t address, size_t bytes) const;

  void held(int change) { held_ += change; }
  void finish();
  void sync_all();

  Counters counters{};

 private:
  struct Cell {
    uint32_t number;                // of the last write; 0: none
    uint8_t pipe;
    std::array<uint32_t, kPipes> read;
  };
  struct Line {
    std::array<uint8_t, kLine> data;
    uint64_t dirty;  // a bit per byte
  };
  struct Flag {
    bool is_set = false;
    Clock clock{};
  };

  Line& cached(uintptr_t line);
  void write_back(uintptr_t address, Line& line);
  void check_block(const Memory& m, uintptr_t block, const char* name) const;
  void check_global(Pipe pipe, uintptr_t address, size_t bytes, bool writes, const char* name);

  Machine& machine_;
  int block_, blocks_;
  alignas(64) uint8_t buffer_[kBufferBytes];
  std::vector<Cell> cells_;
  std::vector<uint32_t> owners_;
  std::array<Clock, kPipes> known_{};
  Clock issued_{};
  Flag flags_[kPipes][kPipes][kEvents];
  bool occupied_[kPipes][kPipes][kEvents] = {};
  std::map<uintptr_t, Line> cache_;
  uint32_t allocated_ = 0, tickets_ = 0;
  int held_ = 0;
};

// The core that runs on this thread.
Core& core();

// Memory that the next launch of this thread may touch.
void add_memory(const void* data, size_t bytes);
void clear_memory();

// Runs a kernel once per block; returns 0, or throws Fault.
void launch(uint32_t blocks, const std::function<void()>& kernel);

// Byte that fills a fresh unified buffer. All ones is a NaN as a float.
extern int poison;
// Whether it is a fault that two blocks write into the same 32 bytes of global memory.
extern bool whole_blocks;
extern Counters totals;

}  // namespace ascendc_on_host
