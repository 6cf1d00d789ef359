// f32 reductions as operations on lanes. Included by the rows of all instruction sets.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/exp/exp.h"
#include "num/log/log.h"
#include "num/reduce/lanes.h"
#include "ops/reduce/cpu/binary64.h"
#include "ops/reduce/cpu/integer.h"
#include "ops/reduce/reduce.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

namespace lanes = num::INVAR_ISA_NS;

// Elements per row; for a variance also the degrees of freedom (reduce.10).
struct ElementCount {
  F all, free;
};

// An operation: how lanes join (Join), what pads the vector at a row's end (Fill), one step, and
// finish(). Wide and kIntegerOp name the same for binary64 and integers. A centred operation uses a
// first reduction of the same rows.
struct FloatOp {
  static constexpr bool kCentred = false, kFillCentre = false;
  static constexpr IntegerOp kIntegerOp = IntegerOp::none;
  using Wide = void;  // the same for binary64
};
struct SumOp : FloatOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::sum;
  using Wide = Sums64;
  using Join = lanes::SumOp;
  using Fill = Join;
  INVAR_INLINE F step(F acc, F x, F) { return add(acc, x); }
  INVAR_INLINE F finish(F total, ElementCount, F) { return total; }
};
struct MeanOp : SumOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::mean;
  using Wide = Mean64;
  INVAR_INLINE F finish(F total, ElementCount n, F) { return div(total, n.all); }
};
struct L1Op : SumOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::l1;
  using Wide = Magnitudes64;
  INVAR_INLINE F step(F acc, F x, F) { return add(acc, lanes::abs(x)); }
};
struct SquareOp : SumOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::squares;
  using Wide = Squares64;
  INVAR_INLINE F step(F acc, F x, F) { return fma(x, x, acc); }
};
struct L2Op : SquareOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::none;
  using Wide = Length64;
  INVAR_INLINE F finish(F total, ElementCount, F) { return sqrt(total); }
};
template <class Joining, IntegerOp kIntegers, class Joining64>
struct JoinOp : FloatOp {
  static constexpr IntegerOp kIntegerOp = kIntegers;
  using Wide = Joins64<Joining64>;
  using Join = Joining;
  using Fill = Join;
  INVAR_INLINE F step(F acc, F x, F) { return Join::join(acc, x); }
  INVAR_INLINE F finish(F total, ElementCount, F) { return total; }
};
using ProdOp = JoinOp<lanes::ProductOp, IntegerOp::prod, lanes::Product64>;
using MaxOp = JoinOp<lanes::Largest, IntegerOp::max, lanes::Largest64>;
using MinOp = JoinOp<lanes::Smallest, IntegerOp::min, lanes::Smallest64>;

struct LogSumOp : SumOp {
  static constexpr IntegerOp kIntegerOp = IntegerOp::none;
  using Wide = void;
  INVAR_INLINE F finish(F total, ElementCount, F) { return lanes::log(total); }
};
// reduce.9: weights relative to the centre, the row's maximum if that is finite.
struct LogSumExpOp : FloatOp {
  static constexpr bool kCentred = true;
  using First = MaxOp;
  using Join = lanes::SumOp;
  using Fill = lanes::Largest;  // exp(-inf) = +0
  INVAR_INLINE F centre(F most, ElementCount) { return select(eq(sub(most, most), zero()), most, zero()); }
  INVAR_INLINE F step(F acc, F x, F centre) { return add(acc, canonicalize(lanes::exp(sub(x, centre)))); }
  INVAR_INLINE F finish(F total, ElementCount, F centre) { return add(centre, lanes::log(total)); }
};
// reduce.10
struct VarOp : FloatOp {
  static constexpr bool kCentred = true, kFillCentre = true;  // +0 - +0 beyond a row's end
  using First = SumOp;
  using Join = lanes::SumOp;
  using Fill = Join;
  INVAR_INLINE F centre(F total, ElementCount n) { return div(total, n.all); }
  INVAR_INLINE F step(F acc, F x, F centre) {
    F d = sub(x, centre);
    return fma(d, d, acc);
  }
  INVAR_INLINE F finish(F total, ElementCount n, F) { return div(total, n.free); }
};
struct StdOp : VarOp {
  INVAR_INLINE F finish(F total, ElementCount n, F) { return sqrt(div(total, n.free)); }
};

// Host only: it reads attributes.
inline ElementCount count_of(const Call& call, const Reduction& r) {
  int64_t free = r.n - ReduceVarAttributes(call).correction;
  return {set1(static_cast<float>(r.n)), set1(static_cast<float>(free < 0 ? 0 : free))};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
