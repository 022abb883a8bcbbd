#include "stream.hpp"

#include <map>

#include "device.hpp"

namespace amdsim::hip {

void Completion::set() {
  const std::lock_guard lock(guard_);
  done_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Completion::wait() const {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return done_; });
}

bool Completion::done() const {
  const std::lock_guard lock(guard_);
  return done_;
}

std::chrono::steady_clock::time_point Completion::time() const {
  const std::lock_guard lock(guard_);
  return time_;
}

Stream::Stream(int device, unsigned flags, int priority) : device_(device), flags_(flags), priority_(priority) {
  last_ = std::make_shared<Completion>();
  last_->set();
}

Stream::~Stream() {
  {
    const std::lock_guard lock(guard_);
    stop_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

Point Stream::push(Task task, std::vector<Point> waits) {
  const std::lock_guard lock(guard_);
  if (!worker_.joinable()) worker_ = std::thread([this] { run(); });
  last_ = std::make_shared<Completion>();
  queue_.push_back({std::move(task), std::move(waits), last_});
  changed_.notify_all();
  return last_;
}

Point Stream::last() const {
  const std::lock_guard lock(guard_);
  return last_;
}

Error Stream::take_failure() {
  const std::lock_guard lock(guard_);
  return std::exchange(failure_, kSuccess);
}

void Stream::run() {
  for (;;) {
    Entry entry;
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      entry = std::move(queue_.front());
      queue_.pop_front();
    }
    execute(entry);
  }
}

void Stream::execute(Entry& entry) {
  for (const Point& p : entry.waits) p->wait();
  const Error result = guarded(entry.task);
  {
    const std::lock_guard lock(guard_);
    if (failure_ == kSuccess) failure_ = result;
  }
  entry.done->set();
}

namespace {

/// All streams of the process. Default streams live as long as it does.
struct Table {
  std::mutex guard;
  std::map<void*, StreamPtr> created;
  std::map<int, StreamPtr> defaults;

  StreamPtr default_of(int device) {
    StreamPtr& stream = defaults[device];
    if (!stream) stream = std::make_shared<Stream>(device, 0u, 0);
    return stream;
  }
};

// Never destroyed: Python may still hold handles while the process exits, and a worker must not outlive its stream.
Table& table() {
  static Table* t = new Table;
  return *t;
}

void* const kLegacy = reinterpret_cast<void*>(1);
void* const kPerThread = reinterpret_cast<void*>(2);

bool is_default(void* handle) { return handle == nullptr || handle == kLegacy; }

StreamPtr per_thread_stream() {
  static thread_local StreamPtr* stream = new StreamPtr(find_stream(create_stream(0, 0)));
  return *stream;
}

/// What a task on `stream` must wait for besides its own queue (HIP: "default stream").
std::vector<Point> ordering(Table& t, const Stream& stream, bool is_default_stream) {
  std::vector<Point> waits;
  if (stream.flags() & kStreamNonBlocking) return waits;
  if (!is_default_stream) {
    waits.push_back(t.default_of(stream.device())->last());
    return waits;
  }
  for (const auto& [handle, other] : t.created)
    if (other->device() == stream.device() && !(other->flags() & kStreamNonBlocking)) waits.push_back(other->last());
  return waits;
}

void raise_failure(Stream& stream) {
  const Error failure = stream.take_failure();
  if (failure != kSuccess) throw HipError(failure, last_report());
}

}  // namespace

StreamPtr find_stream(void* handle) {
  check_device(current_device());
  if (handle == kPerThread) return per_thread_stream();
  Table& t = table();
  const std::lock_guard lock(t.guard);
  if (is_default(handle)) return t.default_of(current_device());
  const auto found = t.created.find(handle);
  require(found != t.created.end(), kInvalidHandle, "not a stream");
  return found->second;
}

void* create_stream(unsigned flags, int priority) {
  check_device(current_device());
  Table& t = table();
  auto stream = std::make_shared<Stream>(current_device(), flags, priority);
  const std::lock_guard lock(t.guard);
  t.created.emplace(stream.get(), stream);
  return stream.get();
}

void destroy_stream(void* handle) {
  Table& t = table();
  StreamPtr stream;  // destroyed, and so drained, outside of the lock
  const std::lock_guard lock(t.guard);
  const auto found = t.created.find(handle);
  require(found != t.created.end(), kInvalidHandle, "not a stream");
  stream = std::move(found->second);
  t.created.erase(found);
}

Point enqueue(void* handle, Task task) {
  const StreamPtr stream = find_stream(handle);
  Table& t = table();
  const std::lock_guard lock(t.guard);
  return stream->push(std::move(task), ordering(t, *stream, is_default(handle)));
}

void synchronize(void* handle) {
  const StreamPtr stream = find_stream(handle);
  if (is_default(handle)) enqueue(handle, [] {})->wait();  // waits for the blocking streams too
  stream->last()->wait();
  raise_failure(*stream);
}

void synchronize_device() {
  std::vector<StreamPtr> streams = {find_stream(nullptr)};
  {
    Table& t = table();
    const std::lock_guard lock(t.guard);
    for (const auto& [handle, stream] : t.created)
      if (stream->device() == current_device()) streams.push_back(stream);
  }
  for (const StreamPtr& stream : streams) stream->last()->wait();
  for (const StreamPtr& stream : streams) raise_failure(*stream);
}

}  // namespace amdsim::hip
