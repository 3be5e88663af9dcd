// The shared memory of the block that runs: dynamic, allocated to the byte, and the section of static objects.
#pragma once
#include <stddef.h>

namespace cuda_on_host {

class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  unsigned char* data() const { return data_; }
  // Before each block: every byte becomes `poison` (zero if that is negative), and unwritten to the race check.
  void refill(int poison);

 private:
  size_t bytes_;
  unsigned char* data_;
};

}  // namespace cuda_on_host
