// Reads what a plan says of constants: the text of a weight (plan.8), and the program that the plan
// was compiled from (plan.18).
#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "plan/text/cursor.h"

namespace invar::plan {

inline constexpr size_t kMaxRank = 8;

DType read_dtype(Cursor&);  // up to the next space
// "NAME DTYPE SHAPE sha256 HEX" up to the end of the line; `bytes`: its size by dtype and shape.
Weight read_weight_text(Cursor&, uint64_t& bytes);
// "RECIPE sha256 HEX" up to the end of the line.
Source read_source(Cursor&);
// Appends a tensor. Names ascend.
void read_source_tensor(Cursor&, Source&);

}  // namespace invar::plan
