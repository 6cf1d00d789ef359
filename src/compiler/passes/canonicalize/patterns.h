// Rewrites within the repro dialect that keep the bits (law 5). Each says why where it is defined.
// An operation that rounds, flushes subnormals or canonicalizes NaN stays: x + 0 and x * 1 are no
// identities (formats.5).
#pragma once

#include "compiler/lowering/rule_registry.h"
#include "mlir/IR/SymbolTable.h"

namespace invar::compiler {

// Identity copies, and copies of copies.
void add_copy_patterns(RewritePatternSet&);
// Casts of casts.
void add_cast_patterns(RewritePatternSet&);
// Operands that a kernel can read without a preceding transpose or expand.
void add_operand_patterns(RewritePatternSet&);
// Quantization before data movement, and after dequantization.
void add_quantization_patterns(RewritePatternSet&);
// Constant folding. *evaluated: bytes of results so far, which a limit bounds.
void add_constant_patterns(RewritePatternSet&, int64_t* evaluated);

// Applies patterns until none matches. Fails if the driver reaches its iteration limit.
LogicalResult apply_greedily(func::FuncOp, RewritePatternSet&&);
// Applies all patterns of this header and merges equal operations.
void canonicalize(func::FuncOp);
// Common subexpression elimination. Operations with state are never equal.
void merge_equal_ops(Block&);
void erase_dead_ops(Block&);
// The functions that a control-flow operation runs.
std::vector<func::FuncOp> bodies_of(ReproFlowOp, SymbolTableCollection& functions);

// Whether a permutation moves no element in memory: the order of the dimensions other than 1 stays.
bool preserves_memory_order(Type from, llvm::ArrayRef<int64_t> perm);
Value make_transpose(OpBuilder&, Location, Value x, llvm::ArrayRef<int64_t> perm);
Value make_reshape(OpBuilder&, Location, Value x, const Shape&);

}  // namespace invar::compiler
