// Shared declarations of the import code of this room.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

inline constexpr int64_t kToEnd = INT32_MAX;  // exporters write at least this for "to the end"

// The elements start, start + step, ... of one dimension.
struct SliceRange {
  int64_t start = 0, step = 1;
  Dim size;
  // A symbolic start with its step `stride`; `start` and `step` are not used then.
  std::optional<DimExpr> from = {};
  int64_t stride = 1;
};
// One range per dimension that takes all elements.
std::vector<SliceRange> full_ranges(const Shape&);
// Slices operand 0 by one range per dimension.
Result<Value> slice_ranges(NodeView&, const std::vector<SliceRange>&);

// An integer list that is an attribute before opset `since` and operand i from then on; empty if
// absent.
Result<std::vector<int64_t>> ints_from_attr_or_operand(NodeView&, const char* name, unsigned i,
                                                       int64_t since);
// The elements of operand i as a shape.
Result<Shape> shape_operand(NodeView&, unsigned i);
Result<Value> make_trilu(NodeView&, Value x, int64_t upper, int64_t k);

// The rules of each file.
void import_move_slices(RuleRegistry&);
void import_move_permutations(RuleRegistry&);
void import_move_pads(RuleRegistry&);
void import_move_index_generated(RuleRegistry&);

}  // namespace invar::compiler
