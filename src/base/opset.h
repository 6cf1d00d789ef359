// The operations of spec/opset.toml as data, for every stage that must know their versions.
// tools/ops/generate.py makes the tables: the library invar_opset, which comes with invar_base.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace invar {

struct OpInfo {
  std::string_view op;
  int version;                // changes whenever the operation's bits do
  std::string_view numerics;  // the rule of spec/ that fixes them
  std::string_view room;      // its folder in src/ops, often its own name
  std::string_view kind;      // what operations of a room share ([kind.NAME] of its table), or empty
};

std::span<const OpInfo> opset();             // ascending by name
const OpInfo* op_info(std::string_view op);  // null: no such operation

// How ranks divide the results of an operation among themselves (src/plan/analysis/split_rules.h).
struct OpSplit {
  std::string_view op, split;
};
std::span<const OpSplit> op_splits();  // of the operations that say it

// The numerics choices (spec/choices.md) that this build knows, ascending.
std::span<const std::string_view> choices();

}  // namespace invar
