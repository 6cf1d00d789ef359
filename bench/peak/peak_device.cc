// A build without CUDA, which opens no device that could be measured.
#include "bench/peak/peak_device.h"

namespace invar::bench {

Result<DevicePeaks> device_peaks(Device&) {
  return Error{Code::internal, "this build has no CUDA kernels"};
}

}  // namespace invar::bench
