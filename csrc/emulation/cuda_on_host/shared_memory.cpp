#include "shared_memory.h"

#include <stdlib.h>

#include <new>

#include "races.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

// The linker's names for the ends of the section; absent if no source has a static shared object.
extern "C" {
extern unsigned char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
}

namespace cuda_on_host {
namespace {

constexpr size_t kAlignment = 128, kBeyond = 128;  // room past the end, out of bounds to AddressSanitizer

size_t allocated(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment + kBeyond; }

void poison_beyond([[maybe_unused]] unsigned char* data, [[maybe_unused]] size_t bytes, [[maybe_unused]] bool on) {
#if defined(__SANITIZE_ADDRESS__)
  if (on) __asan_poison_memory_region(data + bytes, allocated(bytes) - bytes);
  else __asan_unpoison_memory_region(data, allocated(bytes));
#endif
}

// Byte by byte and unchecked: between static objects lie AddressSanitizer's own zones.
__attribute__((no_sanitize("address"), noinline)) void fill(volatile unsigned char* begin, volatile unsigned char* end,
                                                           unsigned char value) {
  for (; begin < end; ++begin) *begin = value;
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes)
    : bytes_(bytes), data_(static_cast<unsigned char*>(aligned_alloc(kAlignment, allocated(bytes)))) {
  if (!data_) throw std::bad_alloc();
  poison_beyond(data_, bytes_, true);
}

SharedMemory::~SharedMemory() {
  poison_beyond(data_, bytes_, false);
  free(data_);
}

void SharedMemory::refill(int poison) {
  const unsigned char value = poison < 0 ? 0 : static_cast<unsigned char>(poison);
  fill(data_, data_ + bytes_, value);
  mark_unwritten(data_, data_ + bytes_);
  if (!__start_cuda_shared) return;
  fill(__start_cuda_shared, __stop_cuda_shared, value);
  mark_unwritten(__start_cuda_shared, __stop_cuda_shared);
}

}  // namespace cuda_on_host
