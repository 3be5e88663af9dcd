// A function with a stack of its own, resumed and suspended by hand: one per CUDA thread.
#pragma once
#include <stddef.h>
#include <ucontext.h>

namespace cuda_on_host {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() calls `entry` from its beginning; a call that was suspended before is forgotten.
  void prepare(void (*entry)());
  // Runs until the fiber suspends itself. Called from outside all fibers.
  void resume();
  // Goes back to where resume() was called. With `for_good`, never returns.
  void suspend(bool for_good = false);
  bool owns(const void* address) const;

 private:
  char* stack_;
  void* stack_pointer_ = nullptr;  // where a suspended fiber goes on
  void* fake_stack_ = nullptr;     // AddressSanitizer's own
  ucontext_t context_;
};

}  // namespace cuda_on_host
