// The calling thread's device, see calling_thread.h; does nothing in a build without CUDA.
#include "device/calling_thread.h"

#ifdef INVAR_CUDA
#include <cuda_runtime_api.h>
#endif

namespace invar {

DeviceScope::DeviceScope(int index) : index_(index), before_(index) {
#ifdef INVAR_CUDA
  cudaGetDevice(&before_);
  if (before_ != index_) cudaSetDevice(index_);
#endif
}
DeviceScope::~DeviceScope() {
#ifdef INVAR_CUDA
  if (before_ != index_) cudaSetDevice(before_);
#endif
}

Status launch_status() {
#ifdef INVAR_CUDA
  if (const cudaError_t e = cudaGetLastError(); e != cudaSuccess)
    return bad_input(std::string("a kernel did not start: ") + cudaGetErrorString(e) + " (" +
                     cudaGetErrorName(e) + ")");
#endif
  return {};
}

}  // namespace invar
