// The pipe object, queues and plain buffers. A member is const, or takes a constant, only where AscendC's does.
#pragma once
#include <deque>

#include "ascendc_on_host/tensors.h"

namespace AscendC {

template <TPosition position>
class TBuf {
 public:
  template <class T>
  LocalTensor<T> Get() {
    return {offset_, uint32_t(bytes_ / sizeof(T)), ticket_};
  }
  template <class T>
  LocalTensor<T> GetWithOffset(uint32_t size, uint32_t byte_offset) {
    if (byte_offset + size * sizeof(T) > bytes_) host::fault("GetWithOffset: past the end of the buffer");
    return {offset_ + byte_offset, size, ticket_};
  }

 private:
  friend class TPipe;
  uint32_t offset_ = 0, bytes_ = 0, ticket_ = 0;
};

// EnQue tells the pipe that reads a tensor that its writer is done; FreeTensor tells the writer that the reader is.
// A bound queue hands what a copy brought in to the copy that takes it out.
template <TPosition from, TPosition to, int32_t depth>
class TQueBind {
 public:
  template <class T>
  LocalTensor<T> AllocTensor() {
    for (Buffer& b : buffers_) {
      if (b.state != kFree) continue;
      if (b.event >= 0) meet(reader(), writer(), b);
      return take<T>(b, kAllocated);
    }
    host::fault("AllocTensor: all %zu buffers are in use, the core would hang", buffers_.size());
  }
  template <class T>
  void EnQue(const LocalTensor<T>& t) {
    if (int(queued_.size()) >= depth) host::fault("EnQue: the queue is %d deep and full", depth);
    Buffer& b = find("EnQue", t, kAllocated);
    b.event = host::core().alloc_event(writer(), reader());
    host::core().set_flag(writer(), reader(), b.event);
    b.state = kQueued;
    b.ticket = host::core().new_ticket();
    host::core().own(b.offset, bytes_, b.ticket);
    queued_.push_back(&b);
  }
  template <class T>
  LocalTensor<T> DeQue() {
    if (queued_.empty()) host::fault("DeQue: the queue is empty, the core would hang");
    Buffer& b = *queued_.front();
    queued_.pop_front();
    meet(writer(), reader(), b);
    host::core().held(-1);
    return take<T>(b, kDequeued);
  }
  template <class T>
  void FreeTensor(LocalTensor<T>& t) {
    Buffer& b = find("FreeTensor", t, kDequeued);
    b.event = host::core().alloc_event(reader(), writer());
    host::core().set_flag(reader(), writer(), b.event);
    b.state = kFree;
    host::core().own(b.offset, bytes_, b.ticket = host::core().new_ticket());
    host::core().held(-1);
  }
  ~TQueBind() {
    for (Buffer& b : buffers_)
      if (b.state == kFree && b.event >= 0) meet(reader(), writer(), b);
  }

 private:
  friend class TPipe;
  enum State { kFree, kAllocated, kQueued, kDequeued };
  struct Buffer {
    uint32_t offset, ticket;
    State state;
    int event;
  };
  static constexpr host::Pipe writer() { return from == TPosition::VECIN ? host::kLoad : host::kVector; }
  static constexpr host::Pipe reader() { return to == TPosition::VECOUT ? host::kStore : host::kVector; }

  static void meet(host::Pipe first, host::Pipe then, Buffer& b) {
    host::core().wait_flag(first, then, b.event);
    host::core().release_event(first, then, b.event);
    b.event = -1;
  }
  template <class T>
  LocalTensor<T> take(Buffer& b, State state) {
    b.state = state;
    b.ticket = host::core().new_ticket();
    host::core().own(b.offset, bytes_, b.ticket);
    host::core().held(1);
    return {b.offset, uint32_t(bytes_ / sizeof(T)), b.ticket};
  }
  template <class T>
  Buffer& find(const char* name, const LocalTensor<T>& t, State state) {
    for (Buffer& b : buffers_)
      if (b.offset == t.offset() && b.ticket == t.ticket() && b.state == state) return b;
    host::fault("%s: not a tensor that this queue gave out and still expects", name);
  }
  std::vector<Buffer> buffers_;
  std::deque<Buffer*> queued_;
  uint32_t bytes_ = 0;
};

// Between a copy and the vector unit.
template <TPosition position, int32_t depth>
class TQue : public TQueBind<position == TPosition::VECIN ? TPosition::VECIN : TPosition::VECCALC,
                             position == TPosition::VECIN ? TPosition::VECCALC : TPosition::VECOUT, depth> {};

class TPipe {
 public:
  TPipe() { current() = this; }
  ~TPipe() { current() = nullptr; }
  template <TPosition from, TPosition to, int32_t depth>
  bool InitBuffer(TQueBind<from, to, depth>& que, uint8_t count, uint32_t bytes) {
    bytes = (bytes + host::kBlock - 1) / host::kBlock * host::kBlock;
    que.bytes_ = bytes;
    for (int i = 0; i < count; ++i) que.buffers_.push_back({host::core().allocate(bytes), 0, que.kFree, -1});
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position>& buffer, uint32_t bytes) {
    buffer.offset_ = host::core().allocate(bytes);
    buffer.bytes_ = bytes;
    buffer.ticket_ = host::core().new_ticket();
    host::core().own(buffer.offset_, bytes, buffer.ticket_);
    return true;
  }
  // For a flag that is waited for at once: nothing keeps others from the same event.
  int32_t FetchEventID(HardEvent e) { return host::core().fetch_event(pipes_of(e).from, pipes_of(e).to); }
  template <HardEvent e>
  int32_t AllocEventID() {
    return host::core().alloc_event(pipes_of(e).from, pipes_of(e).to);
  }
  template <HardEvent e>
  void ReleaseEventID(int32_t id) {
    host::core().release_event(pipes_of(e).from, pipes_of(e).to, id);
  }

  static TPipe*& current() {
    static thread_local TPipe* pipe = nullptr;
    return pipe;
  }
};

inline TPipe* GetTPipePtr() {
  if (!TPipe::current()) host::fault("GetTPipePtr: there is no TPipe");
  return TPipe::current();
}

}  // namespace AscendC
