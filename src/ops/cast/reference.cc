// spec: cast.1 - cast.6.
#include "kernels/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "ops/cast/cast.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &in = call.in[0], &out = call.out[0];
  int64_t n = out.elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i)
    write_number(out.data, out.dtype, i, read_number(in.data, in.dtype, i), in.dtype);
}

static const char* check(const Call& c) {
  if (!has_operands(c, 1, 1)) return "one operand and one result";
  return same_shape(c.in[0], c.out[0]) ? nullptr : "a result shaped like the operand";
}

extern const OpContract contract_cast;
extern const CpuKernel row_cast_reference;
const OpContract contract_cast = {
    .op = "cast", .check = check, .batch_independent = batch_independent_first_operand};
const CpuKernel row_cast_reference = {.op = "cast", .isa = "reference", .units = chunk_units, .run = run};

}  // namespace invar::ops
