// How ranks divide the results of an operation among themselves: the column `split` of
// spec/opset.toml, for src/plan/analysis/split_rules.h. cmake/room.cmake makes the table.
#pragma once
#include <span>
#include <string_view>

namespace invar {

struct OpSplit {
  std::string_view op, split;
};
std::span<const OpSplit> op_splits();  // of the operations that say it

}  // namespace invar
