// The connections through which weights reach a GPU. Whoever loads weights at every step keeps
// them: queues and pinned memory take longer to make than a layer to send.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/memory.h"

namespace invar::run {

// One worker's connection to the device: two queues, each with a piece of pinned memory. One piece
// is filled while the other is sent.
struct UploadQueue {
  struct Staging {
    std::shared_ptr<Device> device;
    Allocation pinned;
  } staging[2];
  int next = 0;
  Allocation unpacked;  // device memory of a weight that is about to be packed
  static Result<UploadQueue> open(int index);
  Status send(std::byte* to, const std::byte* from, uint64_t bytes);
  Status wait();
};

// The queues of one device. A load has them alone.
struct UploadQueues {
  std::mutex mutex;
  std::vector<UploadQueue> queues;
  Status open(int count, int index);  // as many at least
};

}  // namespace invar::run
