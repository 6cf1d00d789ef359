#include "ops/lanes.h"

namespace invar::ops {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  INVAR_ISA_NS::binary(call, begin, end, [](auto a, auto b) { return num::INVAR_ISA_NS::mul(a, b); });
}

}  // namespace

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "mul", .isa = INVAR_ISA, .units = chunk_units, .run = run};

}  // namespace invar::ops
