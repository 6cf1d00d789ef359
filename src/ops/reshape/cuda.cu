// reshape and bitcast: one device copy.
#include "kernels/cuda/launch.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void enqueue(const Call& call, Stream stream) {
  const View& out = call.out[0];
  const size_t bytes = static_cast<size_t>(out.elements()) * size_of(out.dtype);
  if (bytes) cudaMemcpyAsync(out.data, call.in[0].data, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(reshape), INVAR_ROW_OF(bitcast);
const GpuKernel INVAR_ROW_OF(reshape) = {.op = "reshape", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue};
const GpuKernel INVAR_ROW_OF(bitcast) = {.op = "bitcast", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
