#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// swapcontext without its two system calls: keeps the callee-saved registers and the stack pointer.
asm(R"(
  .pushsection .text
  .local cuda_on_host_swap
  .type cuda_on_host_swap,@function
cuda_on_host_swap:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
  .size cuda_on_host_swap,.-cuda_on_host_swap
  .popsection)");
extern "C" void cuda_on_host_swap(void** save, void* load);
#endif

namespace cuda_on_host {
namespace {

constexpr size_t kStack = 256 << 10, kGuard = 4 << 10;  // the lowest page faults, so an overflow does not go unnoticed

[[maybe_unused]] ucontext_t scheduler_context;
[[maybe_unused]] void* scheduler_stack_pointer;
[[maybe_unused]] const void* scheduler_stack;
[[maybe_unused]] size_t scheduler_stack_size;
void (*entry_point)();

// AddressSanitizer follows a stack only if it is told of every switch.
void leaving([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* to, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, to, size);
#endif
}
void arrived([[maybe_unused]] void* fake_stack, [[maybe_unused]] bool from_scheduler) {
#if defined(__SANITIZE_ADDRESS__)
  if (from_scheduler) __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack, &scheduler_stack_size);
  else __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void begin() {
  arrived(nullptr, true);
  entry_point();
  abort();  // an entry ends by suspending for good
}

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kGuard + kStack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(memory) + kGuard;
  if (mprotect(stack_, kStack, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Fiber::~Fiber() { munmap(stack_ - kGuard, kGuard + kStack); }

bool Fiber::owns(const void* address) const {
  const char* a = static_cast<const char*>(address);
  return a >= stack_ && a < stack_ + kStack;
}

void Fiber::prepare(void (*entry)()) {
  entry_point = entry;
  fake_stack_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStack);
#endif
#if defined(__x86_64__)
  // As cuda_on_host_swap leaves a stack: six registers, then the address to return to; aligned as after a call.
  void** top = reinterpret_cast<void**>(stack_ + kStack) - 8;
  top[0] = reinterpret_cast<void*>(begin);
  top[1] = nullptr;
  stack_pointer_ = memset(top - 6, 0, 6 * sizeof(void*));
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  makecontext(&context_, begin, 0);
#endif
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  leaving(&fake_stack, stack_, kStack);
#if defined(__x86_64__)
  cuda_on_host_swap(&scheduler_stack_pointer, stack_pointer_);
#else
  swapcontext(&scheduler_context, &context_);
#endif
  arrived(fake_stack, false);
}

void Fiber::suspend(bool for_good) {
  leaving(for_good ? nullptr : &fake_stack_, scheduler_stack, scheduler_stack_size);
#if defined(__x86_64__)
  cuda_on_host_swap(&stack_pointer_, scheduler_stack_pointer);
#else
  swapcontext(&context_, &scheduler_context);
#endif
  arrived(fake_stack_, true);
}

}  // namespace cuda_on_host
