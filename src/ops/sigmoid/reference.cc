// spec: spec.md sigmoid.1 - sigmoid.4
#include "num/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i) {
    float x = value(call.in[0], i);
    return 1.0f / (1.0f + num::reference::exp(-x));
  });
}

extern const Kernel row_sigmoid_reference;
const Kernel row_sigmoid_reference = {
    .op = "sigmoid", .isa = "reference", .check = check_unary, .units = chunk_units, .run = run};

}  // namespace invar::ops
