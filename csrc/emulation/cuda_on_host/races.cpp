#include "races.h"

#include <memory>
#include <unordered_map>

#include "cuda_on_host/machine.h"

namespace cuda_on_host {

const Moment* now = nullptr;

namespace {

bool sees_accesses = false;

struct Access {
  Moment moment{};
  bool is_atomic = false;
};

// What is known of one byte: its last write, and two reads since, of different threads. Two are enough: a write that
// races with a third reader races with one of these as well, unless a barrier lies between.
struct Cell {
  Access write, read[2];
  bool unwritten = false;
};

constexpr uintptr_t kPage = 1024;
using Page = Cell[kPage];

std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
uintptr_t last_number = 0;
Cell* last_page = nullptr;

Cell& cell(uintptr_t address) {
  const uintptr_t number = address / kPage;
  if (!last_page || number != last_number) {
    auto& page = pages[number];
    if (!page) page.reset(new Page[1]{});
    last_page = *page.get();
    last_number = number;
  }
  return last_page[address % kPage];
}

bool ordered(const Moment& before, const Moment& after) {
  if (before.thread == 0 || before.thread == after.thread) return true;
  if (before.block != after.block) return false;
  return before.barriers < after.barriers || (before.warp == after.warp && before.warp_syncs < after.warp_syncs);
}

bool conflict(const Access& earlier, const Access& access) {
  return !(earlier.is_atomic && access.is_atomic) && !ordered(earlier.moment, access.moment);
}

void note_read(Cell& c, const Access& access) {
  if (c.read[0].moment.thread != access.moment.thread) c.read[1] = c.read[0];
  c.read[0] = access;
}

}  // namespace

void forget_accesses() {
  pages.clear();
  last_page = nullptr;
}

void mark_unwritten(const void* begin, const void* end) {
  if (!sees_accesses) return;
  for (auto a = reinterpret_cast<uintptr_t>(begin); a < reinterpret_cast<uintptr_t>(end); ++a) {
    cell(a) = Cell{};
    cell(a).unwritten = true;
  }
}

void record(const void* address, size_t bytes, bool is_write, bool is_atomic) {
  if (!sees_accesses || !now || is_private(address)) return;
  const Access access{*now, is_atomic};
  for (size_t i = 0; i < bytes; ++i) {
    Cell& c = cell(reinterpret_cast<uintptr_t>(address) + i);
    if (c.unwritten && (!is_write || is_atomic)) fail("read of shared memory that no thread has written");
    if (conflict(c.write, access))
      fail(is_write ? "race: two writes without a barrier" : "race: read after a write without a barrier");
    if (is_write) {
      for (const Access& read : c.read)
        if (conflict(read, access)) fail("race: write after a read without a barrier");
      c.write = access;
      c.read[0] = c.read[1] = Access{};
      c.unwritten = false;
    } else {
      note_read(c, access);
    }
  }
}

void see_accesses() { sees_accesses = true; }

void atomic_access(const void* address, size_t bytes) { record(address, bytes, true, true); }

}  // namespace cuda_on_host

// What the compiler calls before each access (gcc: -fsanitize=thread).
#define DSPARK_ACCESS(kind, is_write)                                                                            \
  void __tsan_##kind##1(void* a) { cuda_on_host::record(a, 1, is_write, false); }                                \
  void __tsan_##kind##2(void* a) { cuda_on_host::record(a, 2, is_write, false); }                                \
  void __tsan_##kind##4(void* a) { cuda_on_host::record(a, 4, is_write, false); }                                \
  void __tsan_##kind##8(void* a) { cuda_on_host::record(a, 8, is_write, false); }                                \
  void __tsan_##kind##16(void* a) { cuda_on_host::record(a, 16, is_write, false); }                              \
  void __tsan_unaligned_##kind##2(void* a) { cuda_on_host::record(a, 2, is_write, false); }                      \
  void __tsan_unaligned_##kind##4(void* a) { cuda_on_host::record(a, 4, is_write, false); }                      \
  void __tsan_unaligned_##kind##8(void* a) { cuda_on_host::record(a, 8, is_write, false); }                      \
  void __tsan_unaligned_##kind##16(void* a) { cuda_on_host::record(a, 16, is_write, false); }                    \
  void __tsan_##kind##_range(void* a, unsigned long bytes) { cuda_on_host::record(a, bytes, is_write, false); }

#if !defined(__SANITIZE_THREAD__)
extern "C" {
DSPARK_ACCESS(read, false)
DSPARK_ACCESS(write, true)
void __tsan_init() { cuda_on_host::see_accesses(); }  // when a source that is checked is loaded
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
}
#endif
