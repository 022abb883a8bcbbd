// Streams and events.
#include "device.hpp"
#include "errors.hpp"
#include "export.hpp"
#include "stream.hpp"

using namespace amdsim::hip;

namespace {

Error make_stream(void** out, unsigned flags, int priority) {
  return guarded([&] {
    require(flags <= kStreamNonBlocking, kInvalidValue, "unknown stream flags");
    give(out, create_stream(flags, priority));
  });
}

Event& check_event(void* handle) {
  require(handle != nullptr, kInvalidHandle, "null event");
  return *static_cast<Event*>(handle);
}

Point recorded(Event& event) {
  const std::lock_guard lock(event.guard);
  return event.point;
}

double milliseconds(const Point& from, const Point& to) {
  return std::chrono::duration<double, std::milli>(to->time() - from->time()).count();
}

}  // namespace

HIP_API hipStreamCreate(void** out) { return make_stream(out, 0, 0); }

HIP_API hipStreamCreateWithFlags(void** out, unsigned flags) { return make_stream(out, flags, 0); }

HIP_API hipStreamCreateWithPriority(void** out, unsigned flags, int priority) {
  return make_stream(out, flags, priority);
}

HIP_API hipStreamDestroy(void* stream) {
  return guarded([&] { destroy_stream(stream); });
}

HIP_API hipStreamSynchronize(void* stream) {
  return guarded([&] { synchronize(stream); });
}

HIP_API hipStreamQuery(void* stream) {
  return guarded([&] { require(find_stream(stream)->last()->done(), kNotReady, "work is queued"); });
}

HIP_API hipStreamGetFlags(void* stream, unsigned* flags) {
  return guarded([&] { give(flags, find_stream(stream)->flags()); });
}

HIP_API hipStreamGetPriority(void* stream, int* priority) {
  return guarded([&] { give(priority, find_stream(stream)->priority()); });
}

HIP_API hipStreamGetDevice(void* stream, int* device) {
  return guarded([&] { give(device, find_stream(stream)->device()); });
}

HIP_API hipStreamWaitEvent(void* stream, void* event, unsigned) {
  return guarded([&] {
    if (const Point point = recorded(check_event(event))) enqueue(stream, [point] { point->wait(); });
  });
}

HIP_API hipLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return guarded([&] {
    require(function != nullptr, kInvalidValue, "null function");
    enqueue(stream, [=] { function(data); });
  });
}

HIP_API hipStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned) {
  return guarded([&] {
    require(function != nullptr, kInvalidValue, "null function");
    enqueue(stream, [=] { function(stream, kSuccess, data); });
  });
}

HIP_API hipEventCreateWithFlags(void** out, unsigned flags) {
  return guarded([&] {
    check_device(current_device());
    auto event = std::make_unique<Event>();
    event->flags = flags;
    give(out, static_cast<void*>(event.get()));
    event.release();
  });
}

HIP_API hipEventCreate(void** out) { return hipEventCreateWithFlags(out, 0); }

HIP_API hipEventDestroy(void* event) {
  return guarded([&] { delete &check_event(event); });
}

HIP_API hipEventRecord(void* event, void* stream) {
  return guarded([&] {
    Event& e = check_event(event);
    Point point = enqueue(stream, [] {});
    const std::lock_guard lock(e.guard);
    e.point = std::move(point);
  });
}

HIP_API hipEventSynchronize(void* event) {
  return guarded([&] {
    if (const Point point = recorded(check_event(event))) point->wait();
  });
}

HIP_API hipEventQuery(void* event) {
  return guarded([&] {
    const Point point = recorded(check_event(event));
    require(!point || point->done(), kNotReady, "not reached");
  });
}

/// Host time of the simulation between two events, not a prediction of the hardware's.
HIP_API hipEventElapsedTime(float* out, void* start, void* stop) {
  return guarded([&] {
    Event &from = check_event(start), &to = check_event(stop);
    require(!((from.flags | to.flags) & kEventDisableTiming), kInvalidHandle, "an event was created without timing");
    const Point first = recorded(from), last = recorded(to);
    require(first && last, kInvalidHandle, "an event was never recorded");
    require(first->done() && last->done(), kNotReady, "an event is not reached");
    give(out, static_cast<float>(milliseconds(first, last)));
  });
}
