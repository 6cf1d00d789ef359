// Rewrites within the reproducible dialect that keep the bits (law 5): each says why where it stands. Whatever rounds, flushes a
// subnormal or makes a NaN canonical stays: x + 0 and x * 1 are no identities here (formats.5).
#pragma once

#include "compiler/lowering/rule_registry.h"
#include "mlir/IR/SymbolTable.h"

namespace invar::compiler {

// Copies of nothing, and copies of copies.
void add_copies(RewritePatternSet&);
// Casts of casts.
void add_conversions(RewritePatternSet&);
// Operands that a kernel reads as they were before they were turned or repeated.
void add_operands(RewritePatternSet&);
// Operations on small constants. *evaluated: bytes of results so far.
void add_constants(RewritePatternSet&, int64_t* evaluated);

// All of these, and one operation instead of equal ones.
void simplify(func::FuncOp);
// The first of equal operations stands for all. Operations with memory are never equal.
void merge_equal(Block&);
void remove_dead(Block&);
// The bodies that control flow runs.
std::vector<func::FuncOp> bodies_of(ReproFlowOp, SymbolTableCollection& functions);

// A transpose behind pointwise operations and moves of elements instead of in front of them.
void sink_transposes(Block&);

// The permutation that undoes it.
SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> perm);
// Whether the dimensions other than 1 stay in their order: then no element moves.
bool keeps_order(Type from, llvm::ArrayRef<int64_t> perm);
// x in another order, of the type that follows.
Value transposed(OpBuilder&, Location, Value x, llvm::ArrayRef<int64_t> perm);
Value reshaped(OpBuilder&, Location, Value x, const Shape&);

}  // namespace invar::compiler
