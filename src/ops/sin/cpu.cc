#include "num/sincos/sincos.h"
#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  unary(call, begin, end, [](F x) { return num::INVAR_ISA_NS::sin(x); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "sin", .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
