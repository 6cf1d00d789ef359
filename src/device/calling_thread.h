// The state of CUDA in a thread that queues kernels on streams of others.
#pragma once

#include "device/device.h"

namespace invar {

// Makes a device that of the calling thread, and at its end the one before it again.
class DeviceScope {
 public:
  explicit DeviceScope(int index);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int index_, before_;
};

// The error of a kernel that the calling thread has queued since it last asked, and that did not
// start.
Status launch_status();

}  // namespace invar
