// A GPU's limits, for data that no cache holds.
#pragma once
#include "device/device.h"

namespace invar::bench {

struct DevicePeaks {
  double flops = 0;             // of fused multiply-adds of f32 in registers, per second
  double read = 0, copied = 0;  // bytes per second; copied: reads and writes both counted
};

// The best of some trials. Needs a build with CUDA.
Result<DevicePeaks> device_peaks(Device&);

}  // namespace invar::bench
