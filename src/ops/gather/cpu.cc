#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& table = call.in[0];
  int64_t rows = table.dim[0], width = last_dim(call.out[0]);
  with_format(table.dtype, [&](auto format) {
    using W = decltype(format);
    for (int64_t r = begin; r < end; ++r) {
      int64_t from = call.in[1].as<const int64_t>()[r];
      bool inside = from >= 0 && from < rows;
      auto p = table.as<const typename W::T>() + (inside ? from * width : 0);
      strip_exact(call.out[0].as<float>() + r * width, width, [&](int64_t i, int n) {
        if (!inside) return from_bits(set1_i(0x7fc00000));  // gather.3
        return copied(n == kW ? W::get(p + i) : W::get_n(p + i, n));
      });
    }
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "gather", .isa = INVAR_ISA, .units = row_units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
