// CPU softmax and log_softmax: contiguous rows, a few long rows by segments, or strided rows by
// columns.
#include "ops/softmax/cpu/backward.h"
#include "ops/softmax/cpu/contiguous.h"
#include "ops/softmax/cpu/cross_entropy.h"
#include "ops/softmax/cpu/strided.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kLog>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const ColumnBlocks shape = softmax_columns(call);
  if (shape.inner != 1) return softmax_strided<kLog>(call, shape, begin, end, static_cast<float*>(scratch));
  if (const int64_t segments = softmax_segments(call))
    return softmax_segments_of<kLog>(call, shape.n, segments, phase, begin, end);
  softmax_rows<kLog>(call, shape.n, begin, end);
}

template <bool kLog>
void run_backward(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const ColumnBlocks shape = softmax_columns(call);
  if (shape.inner != 1) return backward_columns<kLog>(call, shape, begin, end, static_cast<float*>(scratch));
  backward_rows<kLog>(call, shape.n, begin, end);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_SOFTMAX(name, log)                                          \
  extern const CpuKernel INVAR_ROW_OF(name);                              \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                      \
                                        .isa = INVAR_ISA,                 \
                                        .phases = 3,                      \
                                        .units = softmax_units,           \
                                        .run = INVAR_ISA_NS::run<log>,    \
                                        .scratch_bytes = softmax_scratch, \
                                        .shared_bytes = softmax_shared};
INVAR_SOFTMAX(softmax, false)
INVAR_SOFTMAX(log_softmax, true)

#define INVAR_SOFTMAX_BACKWARD(name, log)                                       \
  extern const CpuKernel INVAR_ROW_OF(name);                                    \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                            \
                                        .isa = INVAR_ISA,                       \
                                        .units = softmax_backward_units,        \
                                        .run = INVAR_ISA_NS::run_backward<log>, \
                                        .scratch_bytes = softmax_scratch};
INVAR_SOFTMAX_BACKWARD(softmax_backward, false)
INVAR_SOFTMAX_BACKWARD(log_softmax_backward, true)

#define INVAR_CROSS_ENTROPY(name)            \
  extern const CpuKernel INVAR_ROW_OF(name); \
  const CpuKernel INVAR_ROW_OF(name) = {     \
      .op = #name, .isa = INVAR_ISA, .units = cross_entropy_units, .run = INVAR_ISA_NS::run_##name};
INVAR_CROSS_ENTROPY(cross_entropy)
INVAR_CROSS_ENTROPY(cross_entropy_backward)

}  // namespace invar::ops
