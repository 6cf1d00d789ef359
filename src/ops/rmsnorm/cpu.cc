// CPU rmsnorm: the mean square of each row, then scale and weight, over lanes.
#include "kernels/cpu/norm_gradients.h"
#include "ops/rmsnorm/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t n = call.in[1].elements();
  float epsilon = RmsnormAttributes(call).epsilon;
  with_format(call.in[1].dtype, [&](auto format) {
    using W = decltype(format);
    auto w = call.in[1].as<const typename W::T>();
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in[0].as<const float>() + row * n;
      float mean = num::INVAR_ISA_NS::row_sum_squares(x, n) / static_cast<float>(n);  // rmsnorm.2
      F scale = inverse_sqrt(set1(mean), epsilon);                                    // rmsnorm.3
      strip(call.out[0].as<float>() + row * n, n, [&](int64_t i, int lanes) {
        F v = load_part(x + i, lanes);
        F g = get_part<W>(w + i, lanes);
        return mul(mul(v, scale), g);  // rmsnorm.4
      });
    }
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(rmsnorm);
const CpuKernel INVAR_ROW_OF(rmsnorm) = {
    .op = "rmsnorm", .isa = INVAR_ISA, .units = norm_rows, .run = INVAR_ISA_NS::run};
INVAR_NORM_GRADIENTS(rmsnorm, Rmsnorm, false)

}  // namespace invar::ops
