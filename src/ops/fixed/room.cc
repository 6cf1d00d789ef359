// The shapes of fixed-point sums and of the products that they add.
#include "ops/fixed/fixed.h"

namespace invar::ops {

FixedUnits fixed_units(const Call& call) {
  const View& x = call.in[0];
  int64_t n = 1;
  for (int i = 1; i < x.rank; ++i) n *= x.dim[i];
  return {x.dim[0], n};
}

FixedProducts fixed_products(const Call& call) {
  const View &a = call.in[0], &b = call.in[1];
  return {a.dim[0], a.dim[1], a.dim[2], b.dim[2]};
}

const Attributes& transposed_a() {
  static const Attributes attributes{{"trans_a", int64_t{1}}};
  return attributes;
}

UnitProducts unit_products(const Call& call, int64_t first, int64_t units, float* out) {
  const FixedProducts s = fixed_products(call);
  UnitProducts p{{call.in[0], call.in[1]}, {}};
  for (View& v : p.in) {
    v.data = v.as<float>() + first * v.dim[1] * v.dim[2];
    v.dim[0] = units;
  }
  p.out.data = out, p.out.rank = 3;
  p.out.dim[0] = units, p.out.dim[1] = s.rows, p.out.dim[2] = s.columns;
  return p;
}

}  // namespace invar::ops
