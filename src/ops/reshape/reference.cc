// spec: reshape.1, reshape.2.
#include "kernels/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t width = static_cast<int64_t>(size_of(call.out[0].dtype)), n = call.out[0].elements() * width;
  const auto* from = call.in[0].as<const unsigned char>();
  auto* to = call.out[0].as<unsigned char>();
  for (int64_t i = begin * kChunk * width; i < n && i < end * kChunk * width; ++i) to[i] = from[i];
}

static int64_t alias_offset(const Call&) {
  return 0;
}

static const char* check(const Call& c) {
  if (!has_operands(c, 1, 1) || c.in[0].dtype != c.out[0].dtype)
    return "one operand and one result of one dtype";
  return c.in[0].elements() == c.out[0].elements() ? nullptr : "as many elements in the result";
}

static const char* check_bits(const Call& c) {
  if (!has_operands(c, 1, 1) || size_of(c.in[0].dtype) != size_of(c.out[0].dtype))
    return "one operand and one result whose elements are as wide";
  return same_shape(c.in[0], c.out[0]) ? nullptr : "a result shaped like the operand";
}

extern const OpContract contract_reshape, contract_bitcast;
extern const CpuKernel row_reshape_reference, row_bitcast_reference;
const OpContract contract_reshape = {.op = "reshape",
                                     .check = check,
                                     .batch_independent = batch_independent_first_operand,
                                     .alias_offset = alias_offset};
const CpuKernel row_reshape_reference = {
    .op = "reshape", .isa = "reference", .units = chunk_units, .run = run};
const OpContract contract_bitcast = {.op = "bitcast",
                                     .check = check_bits,
                                     .batch_independent = batch_independent_first_operand,
                                     .alias_offset = alias_offset};
const CpuKernel row_bitcast_reference = {
    .op = "bitcast", .isa = "reference", .units = chunk_units, .run = run};

}  // namespace invar::ops
