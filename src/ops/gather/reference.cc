// spec: spec.md gather.1 - gather.4
#include "ops/reference.h"
#include "ops/check.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &table = call.in[0], &index = call.in[1], &out = call.out[0];
  int64_t rows = table.dim[0], width = last_dim(out);
  for (int64_t r = begin; r < end; ++r) {
    int64_t from = index.as<int64_t>()[r];
    bool inside = from >= 0 && from < rows;
    for (int64_t i = 0; i < width; ++i)
      out.as<float>()[r * width + i] =
          inside ? copied(value(table, from * width + i)) : num::f32_from_bits(0x7fc00000);
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "a table, indices and one result";
  const View &table = c.in[0], &index = c.in[1], &out = c.out[0];
  if (!is_weight(table) || index.dtype != DType::i64 || !is_f32(out))
    return "a float table, i64 indices, an f32 result";
  if (table.rank != 2 || out.rank != index.rank + 1 || !same_leading(index, out, index.rank) ||
      last_dim(out) != table.dim[1])
    return "a table [R, D] and a result [indices..., D]";
  return nullptr;
}

extern const Kernel row_gather_reference;
const Kernel row_gather_reference = {
    .op = "gather", .isa = "reference", .check = check, .units = row_units, .run = run};

}  // namespace invar::ops
