// How ranks divide an operation among themselves by whole results: no sum is split, so every result
// has the bits that it has alone. spec/opset.toml names the rule of each operation:
//   columns    of linear layers, whose weights stand column by column (trans_b = 1)
//   elements   each of its own operands' elements; NumPy broadcasting
//   heads      of attention, or of what comes before it
//   rows       along the last dimensions, those of the weights; the others are divided
//   shape      of a reshape: the same elements
//   order      of a transpose: the dimension that the divided one becomes
//   part       of a slice: along the other dimensions
//   channels   of a depthwise operation: the last dimension, and the first one of its weights
//   join       of a concatenation: puts the parts together
// An operation without a rule is computed whole by every rank that needs it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

struct Range {
  int64_t begin, end;
  bool operator==(const Range&) const = default;
};
// How a value lies on the ranks: whole on each, or each has a range of an axis. Ranges ascend;
// several ranks may have the same one.
struct Layout {
  int axis = -1;  // -1: whole
  std::vector<Range> ranges{};
  bool whole() const { return axis < 0; }
  bool operator==(const Layout&) const = default;
};

// The rule of an operation; "": none.
std::string_view split_rule(std::string_view op);

struct NodeSplit {
  Layout out;              // of the only result
  std::vector<Layout> in;  // per operand; of a weight: the slices that the ranks have
  // Attributes that count what is divided: their values per rank.
  std::vector<std::pair<std::string, std::vector<int64_t>>> counts{};
};

class SplitRules {
 public:
  SplitRules(const Plan& p, int ranks) : p_(p), ranks_(ranks), wished_(p.values.size()) {}
  // To be called for the nodes from the last to the first: how a node wants its operands.
  // bad_input: there are too many ranks for its heads.
  Status wish(const Node&);
  // How the ranks divide a node whose operands lie so; nothing: they do not.
  std::optional<NodeSplit> split(const Node&, const std::vector<Layout>& layouts) const;
  // The operation that joins parts along an attribute `axis`.
  static std::string join();

 private:
  using Split = std::optional<NodeSplit>;
  Split columns(const Node&) const;
  Split elements(const Node&, const std::vector<Layout>&) const;
  Split heads(const Node&, const std::vector<Layout>&) const;
  Split attention_heads(const Node&, const std::vector<Layout>&) const;
  Split follow(const Node&, const std::vector<Layout>&) const;
  Split channels(const Node&, const std::vector<Layout>&) const;
  Status wish_heads(const Node&);
  Layout even(int v) const;
  void wish_for(const Operand&, Layout);

  const Plan& p_;
  const int ranks_;
  std::vector<Layout> wished_;  // per value
};

}  // namespace invar::plan
