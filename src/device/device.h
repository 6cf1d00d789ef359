// A GPU as the runtime sees it: memory, and one stream of work that runs in the order of the calls.
// The kernels are the rooms' (kernels/gpu_kernel.h). A build without CUDA has the same interface;
// open() is an error there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

// CUDA's own type of a stream, declared so that users need no CUDA headers.
struct CUstream_st;

namespace invar {

using Stream = CUstream_st*;

class Device {
 public:
  struct Info {
    int index = 0;
    std::string name;
    int compute = 0;              // capability, 90 for 9.0
    int processors = 0;           // streaming multiprocessors
    uint64_t memory = 0;          // bytes in all
    int driver = 0, runtime = 0;  // versions of CUDA, 13000 for 13.0
  };
  // Each call creates a stream. Errors: built without CUDA, no driver or an old one, no GPU, no
  // such index.
  static Result<std::shared_ptr<Device>> open(int index = 0);
  // "cuda" or "cuda:N"; null for "cpu".
  static Result<std::shared_ptr<Device>> named(const std::string& name);

  virtual ~Device() = default;
  virtual const Info& info() const = 0;
  virtual Stream stream() const = 0;
  // Makes this the device of the calling thread, which must be so when it enqueues kernels.
  virtual void make_current() const = 0;

  // Device memory, aligned to 256 bytes; the error says how much there is.
  virtual Result<void*> allocate(uint64_t bytes, const std::string& purpose) = 0;
  virtual void free(void*) = 0;
  // Bytes of device memory that nobody has now.
  virtual uint64_t free_memory() const = 0;
  // Pinned host memory: copies have full speed, and graphs require it.
  virtual Result<void*> allocate_pinned(uint64_t bytes, const std::string& purpose) = 0;
  virtual void free_pinned(void*) = 0;

  // Copies in the order of the stream. Host memory may change when upload() returns, pinned memory
  // only after wait(); a download() has arrived after wait().
  virtual Status upload(void* device, const void* host, size_t bytes) = 0;
  virtual Status download(void* host, const void* device, size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, size_t bytes) = 0;  // within the device
  virtual Status fill(void* device, int byte, size_t bytes) = 0;
  // Waits for all enqueued work. An error names the kernel's fault, and the device is lost.
  virtual Status wait() = 0;

  // Work that is enqueued between begin_capture() and end_capture() becomes a graph and does not
  // run; replay() runs it.
  class Graph {
   public:
    virtual ~Graph() = default;
  };
  virtual Status begin_capture() = 0;
  virtual Result<std::unique_ptr<Graph>> end_capture() = 0;
  virtual Status replay(const Graph&) = 0;
  // Replays it and waits; seconds from its start to its end on the device.
  virtual Result<double> time(const Graph&) = 0;
};

}  // namespace invar
