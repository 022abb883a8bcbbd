// Streams and events: ordered queues of host functions, each run by a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "errors.hpp"

namespace amdsim::hip {

/// A point in a queue that others can wait for.
class Completion {
 public:
  void set();
  void wait() const;
  bool done() const;
  /// When it was reached; only meaningful once done.
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex guard_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  std::chrono::steady_clock::time_point time_;
};

using Point = std::shared_ptr<Completion>;
using Task = std::function<void()>;

class Stream {
 public:
  Stream(int device, unsigned flags, int priority);
  ~Stream();  // finishes what is queued

  int device() const { return device_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }

  /// Runs `task` after everything queued here and after `waits`.
  Point push(Task task, std::vector<Point> waits = {});
  Point last() const;
  /// The first failure of a task since the last call, which also forgets it.
  Error take_failure();

 private:
  struct Entry {
    Task task;
    std::vector<Point> waits;
    Point done;
  };
  void run();
  void execute(Entry& entry);

  const int device_;
  const unsigned flags_;
  const int priority_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  Point last_;
  Error failure_ = kSuccess;
  bool stop_ = false;
  std::thread worker_;
};

using StreamPtr = std::shared_ptr<Stream>;

/// An event: the point at which it was last recorded, or none.
struct Event {
  unsigned flags = 0;
  std::mutex guard;
  Point point;
};

/// Streams by handle. Handle null (and hipStreamLegacy, 1) is the device's default stream, which orders itself after
/// and before all blocking streams; hipStreamPerThread (2) is a blocking stream of the calling thread.
StreamPtr find_stream(void* handle);
void* create_stream(unsigned flags, int priority);
void destroy_stream(void* handle);

/// Queues `task` on `handle` under the default stream's ordering rule.
Point enqueue(void* handle, Task task);

/// Waits for one stream, or all of the current device, and throws the first launch failure met.
void synchronize(void* handle);
void synchronize_device();

}  // namespace amdsim::hip
