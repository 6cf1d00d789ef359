// A GPU as the runtime sees it: memory, and one queue of work in which everything happens in the order of the calls. The
// kernels are the rooms' (kernels/kernel.h). In a build without CUDA open() says so; the program is the same one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

// CUDA's own name of what a stream is, so that nobody needs CUDA's headers to hand one on.
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
  static bool built();  // false: this build has no CUDA
  // A queue of its own each time. Errors: built without CUDA, no driver or an old one, no GPU, no such index.
  static Result<std::shared_ptr<Device>> open(int index = 0);
  // "cuda" or "cuda:N"; null for "cpu".
  static Result<std::shared_ptr<Device>> named(const std::string& name);

  virtual ~Device() = default;
  virtual const Info& info() const = 0;
  virtual Stream stream() const = 0;
  // To be called by a thread before it enqueues kernels: work goes to this device.
  virtual void enter() const = 0;

  // Device memory, aligned to 256 bytes; the error says how much there is.
  virtual Result<void*> take(uint64_t bytes, const std::string& purpose) = 0;
  virtual void give(void*) = 0;
  // Host memory that copies take at full speed, and graphs take at all.
  virtual Result<void*> take_pinned(uint64_t bytes, const std::string& purpose) = 0;
  virtual void give_pinned(void*) = 0;

  // In order with the work. Host memory may be changed when upload() returns, pinned memory only after wait(); download() has
  // arrived after wait().
  virtual Status upload(void* device, const void* host, size_t bytes) = 0;
  virtual Status download(void* host, const void* device, size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, size_t bytes) = 0;  // within the device
  virtual Status fill(void* device, int byte, size_t bytes) = 0;
  // What has been enqueued is done. An error names the kernel's fault; the device is lost then.
  virtual Status wait() = 0;

  // What is enqueued between record() and recorded() is kept as a graph instead of done; replay() does it.
  class Graph {
   public:
    virtual ~Graph() = default;
  };
  virtual Status record() = 0;
  virtual Result<std::unique_ptr<Graph>> recorded() = 0;
  virtual Status replay(const Graph&) = 0;
  // Replays it and waits; seconds from its start to its end on the device.
  virtual Result<double> time(const Graph&) = 0;
};

}  // namespace invar
