#include "num/exp/exp.h"
#include "num/reduce/lanes.h"
#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t n = last_dim(call.in[0]);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    F most = set1(row_max(x, n));  // softmax.1
    strip(y, n, [&](int64_t i, int lanes) {
      return num::INVAR_ISA_NS::exp(
          sub(lanes == kW ? load(x + i) : load_n(x + i, lanes), most));  // softmax.2
    });
    F sum = set1(num::INVAR_ISA_NS::row_sum(y, n));  // softmax.3
    strip(y, n, [&](int64_t i, int lanes) {
      return div(lanes == kW ? load(y + i) : load_n(y + i, lanes), sum);  // softmax.4
    });
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "softmax", .isa = INVAR_ISA, .units = row_units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
