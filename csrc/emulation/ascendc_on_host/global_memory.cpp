// Launches, blocks, and global memory as one core sees it: bounds, the scalar cache, and races between cores and pipes.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "ascendc_on_host/machine.h"

namespace ascendc_on_host {
namespace {
thread_local Core* current = nullptr;
thread_local std::vector<Memory> memories;
}  // namespace

Counters totals{};
bool whole_blocks = false;

// Runs blocks one at a time, each to its end or to SyncAll.
class Machine {
 public:
  explicit Machine(uint32_t blocks) : memory(std::move(memories)), state_(blocks, kReady) {
    for (uint32_t b = 0; b < blocks; ++b) cores.push_back(std::make_unique<Core>(*this, int(b), int(blocks)));
  }

  void run(const std::function<void()>& kernel) {
    if (cores.size() == 1) return run_block(0, kernel);
    std::vector<std::thread> threads;
    for (size_t b = 0; b < cores.size(); ++b)
      threads.emplace_back([&, b] {
        try {
          wait_turn(b);
          run_block(b, kernel);
          leave(b, kDone);
        } catch (...) {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (!error_) error_ = std::current_exception();
          turned_.notify_all();
        }
      });
    for (std::thread& t : threads) t.join();
    if (error_) std::rethrow_exception(error_);
  }

  void sync(size_t block) {
    if (cores.size() > size_t(kVectorCores)) fault("SyncAll: %zu blocks on %d cores", cores.size(), kVectorCores);
    if (cores.size() == 1) {
      ++epoch;
      return;
    }
    leave(block, kWaiting);
    wait_turn(block);
  }

  Memory& find(uintptr_t address, size_t bytes, const char* name) {
    for (Memory& m : memory)
      if (address >= m.begin && address + bytes <= m.begin + m.bytes) return m;
    fault("%s: %zu bytes outside every tensor of the launch", name, bytes);
  }

  std::vector<Memory> memory;
  std::vector<std::unique_ptr<Core>> cores;
  uint16_t epoch = 1;

 private:
  enum State { kReady, kWaiting, kDone };

  void run_block(size_t b, const std::function<void()>& kernel) {
    struct Leave {
      ~Leave() { current = nullptr; }
    } leave;
    current = cores[b].get();
    kernel();
    current->finish();
  }

  void wait_turn(size_t b) {
    std::unique_lock<std::mutex> lock(mutex_);
    turned_.wait(lock, [&] { return error_ || turn_ == b; });
    if (error_) std::rethrow_exception(error_);
  }

  void leave(size_t b, State state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_[b] = state;
    const auto ready = std::find(state_.begin(), state_.end(), kReady);
    if (ready == state_.end()) {
      const auto waiting = std::count(state_.begin(), state_.end(), kWaiting);
      if (waiting && waiting != int64_t(state_.size())) fault("SyncAll: not reached by every block");
      if (waiting) {
        ++epoch;
        std::fill(state_.begin(), state_.end(), kReady);
        turn_ = 0;
      }
    } else {
      turn_ = size_t(ready - state_.begin());
    }
    turned_.notify_all();
  }

  std::vector<State> state_;
  std::mutex mutex_;
  std::condition_variable turned_;
  std::exception_ptr error_;
  size_t turn_ = 0;
};

Core& core() {
  if (!current) fault("a device function was called outside a kernel");
  return *current;
}

void add_memory(const void* data, size_t bytes) {
  if (data && bytes) memories.push_back({uintptr_t(data), bytes, {}});
}
void clear_memory() { memories.clear(); }

void launch(uint32_t blocks, const std::function<void()>& kernel) {
  if (blocks == 0) fault("launch: no blocks");
  Machine machine(blocks);
  machine.run(kernel);
  ++totals.launches;
  for (const auto& core : machine.cores) {
    ++totals.blocks;
    const auto* from = reinterpret_cast<const int64_t*>(&core->counters);
    auto* to = reinterpret_cast<int64_t*>(&totals);
    for (size_t i = 0; i < sizeof(Counters) / sizeof(int64_t); ++i) to[i] += from[i];
  }
}

void Core::sync_all() {
  barrier(kPipes);
  machine_.sync(size_t(block_));
}

void Core::check_global(Pipe pipe, uintptr_t address, size_t bytes, bool writes, const char* name) {
  Memory& m = machine_.find(address, bytes, name);
  if (m.words.empty() && (writes || blocks_ > 1)) m.words.resize((m.bytes + 3 + m.begin % 4) / 4);
  if (m.words.empty()) return;
  const uint32_t number = issued_[pipe];
  const uintptr_t base = m.begin & ~uintptr_t(3);
  for (uintptr_t w = (address - base) / 4; w <= (address + bytes - 1 - base) / 4; ++w) {
    Memory::Word& word = m.words[w];
    if (word.epoch == machine_.epoch && word.core != block_)
      fault("%s: global memory that block %d wrote, with no SyncAll between", name, word.core);
    if (writes && word.reader_epoch == machine_.epoch && word.reader != block_)
      fault("%s: global memory that block %d reads, with no SyncAll between", name, word.reader);
    const bool mine = word.epoch == machine_.epoch && word.core == block_;
    if (mine && word.pipe != pipe && known_[pipe][word.pipe] < word.number)
      fault("%s: global memory that another pipe of this core wrote, with no flag between", name);
    if (writes) word = {number, uint16_t(block_), machine_.epoch, uint8_t(pipe), word.reader, word.reader_epoch};
    else word.reader = uint16_t(block_), word.reader_epoch = machine_.epoch;
  }
  if (writes && blocks_ > 1 && whole_blocks) {
    check_block(m, address / kBlock * kBlock, name);
    check_block(m, (address + bytes - 1) / kBlock * kBlock, name);
  }
}

void Core::check_block(const Memory& m, uintptr_t block, const char* name) const {
  const uintptr_t base = m.begin & ~uintptr_t(3);
  const uintptr_t end = std::min((block + kBlock - base) / 4, uintptr_t(m.words.size()));
  for (uintptr_t w = std::max(block, base) / 4 - base / 4; w < end; ++w)
    if (m.words[w].epoch == machine_.epoch && m.words[w].core != block_)
      fault("%s: part of a 32-byte block that block %d writes too, with no SyncAll between", name, m.words[w].core);
}

bool Core::has_dirty(uintptr_t address, size_t bytes) const {
  for (uintptr_t line = address / kLine * kLine; line < address + bytes; line += kLine) {
    const auto found = cache_.find(line);
    if (found == cache_.end()) continue;
    for (uintptr_t a = std::max(line, address); a < std::min(line + kLine, address + bytes); ++a)
      if (found->second.dirty >> (a - line) & 1) return true;
  }
  return false;
}

Core::Line& Core::cached(uintptr_t line) {
  const auto [found, is_new] = cache_.try_emplace(line);
  if (is_new)
    for (uintptr_t a = line; a < line + kLine; ++a)
      for (const Memory& m : machine_.memory)
        if (a >= m.begin && a < m.begin + m.bytes) found->second.data[a - line] = *reinterpret_cast<uint8_t*>(a);
  return found->second;
}

void Core::load_scalar(uintptr_t address, void* value, size_t bytes) {
  ++counters.scalar_gm_reads;
  if (address % bytes) fault("GetValue: address not aligned to the type");
  issue(kScalar, "GetValue", {});
  check_global(kScalar, address, bytes, false, "GetValue");
  for (const auto& other : machine_.cores)
    if (other.get() != this && other->has_dirty(address, bytes))
      fault("GetValue: block %d wrote this with SetValue and has not cleaned its cache", other->block());
  const Line& line = cached(address / kLine * kLine);
  const size_t at = address % kLine;
  for (size_t i = 0; i < bytes; ++i)
    if (!(line.dirty >> (at + i) & 1) && line.data[at + i] != *reinterpret_cast<uint8_t*>(address + i))
      fault("GetValue: the cached line is stale, it must be invalidated first");
  std::memcpy(value, &line.data[at], bytes);
}

void Core::store_scalar(uintptr_t address, const void* value, size_t bytes) {
  ++counters.scalar_gm_writes;
  if (address % bytes) fault("SetValue: address not aligned to the type");
  issue(kScalar, "SetValue", {});
  check_global(kScalar, address, bytes, true, "SetValue");
  const uintptr_t start = address / kLine * kLine;
  for (const auto& other : machine_.cores)
    if (other.get() != this && other->has_dirty(start, kLine))
      fault("SetValue: block %d holds the same cache line dirty, one write would be lost", other->block());
  Line& line = cached(start);
  const size_t at = address % kLine;
  std::memcpy(&line.data[at], value, bytes);
  for (size_t i = 0; i < bytes; ++i) line.dirty |= uint64_t(1) << (at + i);
}

void Core::write_back(uintptr_t address, Line& line) {
  for (size_t i = 0; i < kLine; ++i)
    if (line.dirty >> i & 1) *reinterpret_cast<uint8_t*>(address + i) = line.data[i];
}

void Core::clean(uintptr_t address, bool whole_cache) {
  const uintptr_t line = address / kLine * kLine;
  for (auto it = cache_.begin(); it != cache_.end();) {
    if (!whole_cache && it->first != line) {
      ++it;
      continue;
    }
    write_back(it->first, it->second);
    it = cache_.erase(it);
  }
}

void Core::copy_in(uintptr_t address, uint32_t offset, size_t bytes) {
  check_global(kLoad, address, bytes, false, "DataCopy");
  for (const auto& other : machine_.cores)
    if (other->has_dirty(address, bytes))
      fault("DataCopy: block %d wrote this with SetValue and has not cleaned its cache", other->block());
  std::memcpy(at(offset), reinterpret_cast<const void*>(address), bytes);
  counters.load_bytes += int64_t(bytes);
}

void Core::copy_out(uint32_t offset, uintptr_t address, size_t bytes) {
  check_global(kStore, address, bytes, true, "DataCopy");
  std::memcpy(reinterpret_cast<void*>(address), at(offset), bytes);
  counters.store_bytes += int64_t(bytes);
}

}  // namespace ascendc_on_host
