// The reductions of floats as operations on lanes. Included by the rows of all instruction sets.
#pragma once
#include "num/exp/exp.h"
#include "num/log/log.h"
#include "num/reduce/lanes.h"
#include "kernels/cpu/vector_io.h"
#include "ops/reduce/cpu/binary64.h"
#include "ops/reduce/cpu/integer.h"
#include "ops/reduce/reduce.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

namespace lanes = num::INVAR_ISA_NS;

// How many elements a row has; for a variance the free ones among them (reduce.10).
struct Count {
  F all, free;
};

// An operation: how lanes join; what fills the vector at a row's end; one step; the value of a row; the same for integers.
// A centred one makes something of a first reduction of the same rows before.
struct Plain {
  static constexpr bool kCentred = false, kFillCentre = false;
  static constexpr Whole kWhole = Whole::none;
  using Wide = void;  // the same of binary64
};
struct SumOp : Plain {
  static constexpr Whole kWhole = Whole::sum;
  using Wide = Sums64;
  using Join = lanes::Sum;
  using Fill = Join;
  INVAR_INLINE F step(F acc, F x, F) { return add(acc, x); }
  INVAR_INLINE F finish(F total, Count, F) { return total; }
};
struct MeanOp : SumOp {
  static constexpr Whole kWhole = Whole::mean;
  using Wide = Mean64;
  INVAR_INLINE F finish(F total, Count n, F) { return div(total, n.all); }
};
struct L1Op : SumOp {
  static constexpr Whole kWhole = Whole::l1;
  using Wide = Magnitudes64;
  INVAR_INLINE F step(F acc, F x, F) { return add(acc, lanes::abs(x)); }
};
struct SquareOp : SumOp {
  static constexpr Whole kWhole = Whole::squares;
  using Wide = Squares64;
  INVAR_INLINE F step(F acc, F x, F) { return fma(x, x, acc); }
};
struct L2Op : SquareOp {
  static constexpr Whole kWhole = Whole::none;
  using Wide = Length64;
  INVAR_INLINE F finish(F total, Count, F) { return sqrt(total); }
};
template <class Joining, Whole kIntegers, class Joining64>
struct JoinOp : Plain {
  static constexpr Whole kWhole = kIntegers;
  using Wide = Joins64<Joining64>;
  using Join = Joining;
  using Fill = Join;
  INVAR_INLINE F step(F acc, F x, F) { return Join::join(acc, x); }
  INVAR_INLINE F finish(F total, Count, F) { return total; }
};
using ProdOp = JoinOp<lanes::Product, Whole::prod, lanes::Product64>;
using MaxOp = JoinOp<lanes::Largest, Whole::max, lanes::Largest64>;
using MinOp = JoinOp<lanes::Smallest, Whole::min, lanes::Smallest64>;

struct LogSumOp : SumOp {
  static constexpr Whole kWhole = Whole::none;
  using Wide = void;
  INVAR_INLINE F finish(F total, Count, F) { return lanes::log(total); }
};
// reduce.9: weights relative to the centre, the row's maximum where that is finite.
struct LogSumExpOp : Plain {
  static constexpr bool kCentred = true;
  using First = MaxOp;
  using Join = lanes::Sum;
  using Fill = lanes::Largest;  // exp(-inf) = +0
  INVAR_INLINE F centre(F most, Count) { return select(eq(sub(most, most), zero()), most, zero()); }
  INVAR_INLINE F step(F acc, F x, F centre) { return add(acc, canon(lanes::exp(sub(x, centre)))); }
  INVAR_INLINE F finish(F total, Count, F centre) { return add(centre, lanes::log(total)); }
};
// reduce.10
struct VarOp : Plain {
  static constexpr bool kCentred = true, kFillCentre = true;  // +0 - +0 beyond a row's end
  using First = SumOp;
  using Join = lanes::Sum;
  using Fill = Join;
  INVAR_INLINE F centre(F total, Count n) { return div(total, n.all); }
  INVAR_INLINE F step(F acc, F x, F centre) {
    F d = sub(x, centre);
    return fma(d, d, acc);
  }
  INVAR_INLINE F finish(F total, Count n, F) { return div(total, n.free); }
};
struct StdOp : VarOp {
  INVAR_INLINE F finish(F total, Count n, F) { return sqrt(div(total, n.free)); }
};

// Of the host alone: it reads attributes.
inline Count count_of(const Call& call, const Reduction& r) {
  int64_t free = r.n - attr_i(call, "correction", 0);
  return {set1(static_cast<float>(r.n)), set1(static_cast<float>(free < 0 ? 0 : free))};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
