#include "run/prepare/chosen_parts.h"

#include <algorithm>
#include <optional>

#include "kernels/fusion/part_rules.h"

namespace invar::run {
namespace {

// Goes from the last node to the first: what a value is read for is known when all its readers are.
class Readers {
 public:
  explicit Readers(const Executable& e)
      : e_(e), made_by_(e.values.size(), -1), read_for_(e.values.size()), chosen_by_(e.values.size(), -1) {
    for (size_t n = 0; n < e.nodes.size(); ++n)
      for (const int v : e.nodes[n].node->out) made_by_[v] = static_cast<int64_t>(n);
    for (const plan::Port& p : e.plan->outputs) read(p.value, {});
  }
  ChosenPart visit(size_t n);

 private:
  const Executable& e_;
  std::vector<int64_t> made_by_;                     // per value: the node; -1: none
  std::vector<std::optional<ChosenPart>> read_for_;  // per value; nothing: by nobody
  // Per value: the indices by which alone its parts are read. -1: they are read otherwise, too.
  std::vector<int> chosen_by_;

  // -1 where it is open.
  int64_t dim(int v, size_t axis) const {
    const auto& shape = e_.plan->values[v].shape;
    return axis < shape.size() && shape[axis].symbol < 0 ? shape[axis].value : -1;
  }
  static bool is_value(const plan::Operand& o) { return o.kind == plan::Operand::value; }
  void read(int v, const ChosenPart& part) {
    chosen_by_[v] = -1;
    if (!read_for_[v])
      read_for_[v] = part;
    else if (*read_for_[v] != part)
      read_for_[v] = ChosenPart{};
  }
  // The operands of a node that joins them along the axis; null: it joins none.
  const std::vector<plan::Operand>* joined(int v, int64_t axis) const {
    if (made_by_[v] < 0) return nullptr;
    const plan::Node& n = *e_.nodes[static_cast<size_t>(made_by_[v])].node;
    const ops::PartRule* rule = ops::find_part_rule(n.op);
    const bool joins = rule && rule->joins_along && rule->joins_along(n.attrs) == axis;
    return joins && std::ranges::all_of(n.in, is_value) ? &n.in : nullptr;
  }
  void choose(const plan::Node&, int64_t axis);
};

// A node that reads parts of in[0] along an axis by the indices in[1].
void Readers::choose(const plan::Node& n, int64_t axis) {
  const int table = n.in[0].index, given = n.in[1].index;
  const auto* parts = joined(table, axis);
  const bool apart = parts && dim(given, e_.plan->values[given].shape.size() - 1) == 1 &&
                     std::ranges::all_of(*parts, [&](const plan::Operand& o) {
                       return dim(o.index, static_cast<size_t>(axis)) == 1;
                     });
  const bool alone = !read_for_[table];
  read(table, {}), read(given, {});
  if (apart && alone) chosen_by_[table] = given;
}

ChosenPart Readers::visit(size_t n) {
  const PreparedNode& prepared = e_.nodes[n];
  const plan::Node& node = *prepared.node;
  const ops::PartRule* rule = ops::find_part_rule(node.op);
  if (rule && rule->reads_along && std::ranges::all_of(node.in, is_value)) {
    choose(node, rule->reads_along(node.attrs));
    return {};
  }
  const int result = node.out[0];
  ChosenPart made;
  if (node.out.size() == 1 && read_for_[result]) made = *read_for_[result];
  if (chosen_by_[result] >= 0) {
    const int by = chosen_by_[result], base = e_.values[by].view_of;
    const auto behind = static_cast<size_t>(made_by_[base >= 0 ? base : by] + 1);
    for (size_t i = 0; i < node.in.size(); ++i)
      read(node.in[i].index, {by, static_cast<int64_t>(i), static_cast<int64_t>(node.in.size()), behind});
    return {};
  }
  const bool may_rest = node.state < 0 && node.bodies.empty() && prepared.join < 0 && !prepared.is_constant &&
                        !prepared.contract->stateful && !prepared.contract->find_out_of_bounds;
  if (made.by >= 0 && (!may_rest || made.behind > n)) made = {};
  for (const plan::Operand& o : node.in)
    if (is_value(o)) read(o.index, made);
  return made;
}

}  // namespace

std::vector<ChosenPart> chosen_parts(const Executable& e) {
  std::vector<ChosenPart> parts(e.nodes.size());
  Readers readers(e);
  for (size_t n = e.nodes.size(); n-- > 0;) parts[n] = readers.visit(n);
  for (size_t head = 0; head < parts.size(); head = e.group_end(head)) {
    const auto group = std::span(parts).subspan(head, e.group_end(head) - head);
    if (std::ranges::any_of(group, [&](const ChosenPart& p) { return p != group[0]; }))
      std::ranges::fill(group, ChosenPart{});
  }
  return parts;
}

namespace {

bool any_is_of(const ChosenPart& part, std::span<const int64_t> indices) {
  return std::ranges::any_of(indices,
                             [&](int64_t i) { return i == part.part || i + part.parts == part.part; });
}

}  // namespace

bool is_read(const ChosenPart& part, const ops::View& by) {
  return any_is_of(part, {by.as<const int64_t>(), static_cast<size_t>(by.elements())});
}

void find_rows(const ChosenPart& part, const ops::View& by, std::vector<int64_t>& rows) {
  rows.clear();
  const auto n = static_cast<size_t>(by.elements() / by.dim[0]);
  for (int64_t row = 0; row < by.dim[0]; ++row)
    if (any_is_of(part, {by.as<const int64_t>() + static_cast<size_t>(row) * n, n})) rows.push_back(row);
}

}  // namespace invar::run
