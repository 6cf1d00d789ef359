// A plan for several ranks, see plan/analysis/shards.h.
#include "plan/analysis/shards.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/opset.h"
#include "plan/analysis/split_rules.h"
#include "plan/analysis/unfuse.h"

namespace invar::plan {

bool looks_up(const Plan& p, const Node& n) {
  bool any = false;
  for (const Operand& o : n.in) {
    if (o.kind != Operand::value) continue;
    const DType t = p.values[o.index].dtype;
    if (t != DType::i64 && t != DType::i32) return false;
    any = true;
  }
  return any;
}

namespace {

bool looks_up_weights(const Plan& p, const Node& n) {
  bool large = false;
  for (const Operand& o : n.in) large |= o.kind == Operand::weight && p.weights[o.index].shape.size() > 1;
  return large && looks_up(p, n);
}

class Sharding {
 public:
  Sharding(const Plan& p, int ranks, bool in_step)
      : p_(p), ranks_(ranks), in_step_(in_step), layouts_(p.values.size()) {
    made_.plan = p, made_.plan.nodes.clear();
    for (size_t v = 0; v < p.values.size(); ++v) made_.value_of.push_back(static_cast<int>(v));
  }

  Status divide() {
    SplitRules rules(p_, ranks_);
    for (size_t n = p_.nodes.size(); n-- > 0;) INVAR_CHECK_OK(rules.wish(p_.nodes[n]));
    bool any = false;
    for (const Node& n : p_.nodes) {
      splits_.push_back(rules.split(n, layouts_));
      if (!splits_.back()) continue;
      layouts_[n.out[0]] = splits_.back()->out, any = true;
    }
    if (!any)
      return not_covered("tensor-parallel: the plan has no linear layer whose columns could be divided");
    return {};
  }

  // Finds, from the last node to the first, which rank needs which value whole.
  void find_needs() {
    needs_.assign(p_.values.size(), std::vector<bool>(static_cast<size_t>(ranks_)));
    computes_.assign(p_.nodes.size(), std::vector<bool>(static_cast<size_t>(ranks_), true));
    for (const Port& o : p_.outputs) needs_[o.value][0] = true;
    for (size_t i = p_.nodes.size(); i-- > 0;) {
      const Node& n = p_.nodes[i];
      std::vector<bool>& computes = computes_[i];
      if (!splits_[i]) {
        for (size_t r = 0; r < computes.size(); ++r) {
          computes[r] = n.state >= 0 && r == 0;
          for (int v : n.out) computes[r] = computes[r] || needs_[v][r];
        }
        if (looks_up_weights(p_, n)) {
          for (size_t r = 1; r < computes.size(); ++r)
            computes[0] = computes[0] || computes[r], computes[r] = false;
        }
      }
      for (size_t o = 0; o < n.in.size(); ++o)
        for (size_t r = 0; r < computes.size(); ++r)
          if (n.in[o].kind == Operand::value && computes[r] && (!splits_[i] || splits_[i]->in[o].whole()))
            needs_[n.in[o].index][r] = true;
    }
  }

  Result<Shards> build() && {
    const size_t values = p_.values.size(), ranks = static_cast<size_t>(ranks_);
    whole_.assign(values, std::vector<int>(ranks, -1)), pieces_ = whole_;
    for (const Port& i : p_.inputs) whole_[i.value].assign(ranks, i.value);
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      for (size_t r = 0; r < ranks; ++r)
        if (computes_[i][r]) add(i, r);
      if (splits_[i])
        join(i);
      else if (computes_[i][0])  // what only rank 0 looks up the others read from there
        for (int v : p_.nodes[i].out) hand_on(i, v);
    }
    if (in_step_ && !has_words_)
      return not_covered("tensor-parallel: a part whose elements are no words is not joined in a step");
    return std::move(made_);
  }

 private:
  int new_value(int v) {
    made_.plan.values.push_back(p_.values[v]), made_.value_of.push_back(v);
    return static_cast<int>(made_.plan.values.size()) - 1;
  }
  int new_piece(int v, const Layout& l, size_t r) {
    const int made = new_value(v);
    made_.plan.values.back().shape[static_cast<size_t>(l.axis)] = {l.ranges[r].end - l.ranges[r].begin, -1};
    return made;
  }
  void put(Node n, size_t rank, size_t of, int join = -1) {
    made_.plan.nodes.push_back(std::move(n));
    made_.rank_of.push_back(static_cast<int>(rank)), made_.node_of.push_back(static_cast<int>(of));
    made_.join_of.push_back(join);
  }

  // A node of one rank.
  void add(size_t i, size_t r) {
    const NodeSplit* const split = splits_[i] ? &*splits_[i] : nullptr;
    Node n = p_.nodes[i];
    n.in.clear();
    for (size_t o = 0; o < p_.nodes[i].in.size(); ++o) {
      const Operand& from = p_.nodes[i].in[o];
      const Layout* const l = split && !split->in[o].whole() ? &split->in[o] : nullptr;
      if (from.kind == Operand::value)
        n.in.push_back({Operand::value, (l ? pieces_ : whole_)[from.index][r]});
      else if (l)
        slice(from.index, *l, r, n.in);
      else
        n.in.push_back(from);
    }
    for (int& v : n.out) {
      const int whole = v;
      if (split)
        v = pieces_[whole][r] = new_piece(whole, split->out, r);
      else
        v = whole_[whole][r] = r == 0 ? whole : new_value(whole);
    }
    for (const auto& [name, counts] : split ? split->counts : decltype(split->counts){})
      n.attrs[name] = counts[r];
    if (n.state >= 0 && r > 0) {
      made_.plan.states.push_back({p_.states[n.state].name + " of rank " + std::to_string(r)});
      n.state = static_cast<int>(made_.plan.states.size()) - 1;
    }
    put(std::move(n), r, i);
  }

  // The slice of a weight that a rank has; of a stack of matrices that of each.
  void slice(int w, const Layout& l, size_t r, std::vector<Operand>& to) {
    const Weight& whole = p_.weights[w];
    const Range range = l.ranges[r];
    const int64_t count = l.axis == 0 ? 1 : whole.shape[0];
    const bool stacked = l.axis > 0 && count > 1;
    const size_t axis = static_cast<size_t>(l.axis);
    uint64_t inner = size_of(whole.dtype);
    for (size_t d = axis + 1; d < whole.shape.size(); ++d) inner *= static_cast<uint64_t>(whole.shape[d]);
    for (int64_t i = 0; i < count; ++i) {
      const auto [known, is_new] = slices_.emplace(std::tuple(w, l.axis, i, range.begin, range.end), 0);
      if (is_new) {
        Weight made = whole;
        made.name += "[" + (stacked ? std::to_string(i) + ", " : "") + std::to_string(range.begin) + ":" +
                     std::to_string(range.end) + "]";
        made.shape[axis] = range.end - range.begin;
        if (stacked) made.shape.erase(made.shape.begin());
        made.offset += inner * static_cast<uint64_t>(i * whole.shape[axis] + range.begin);
        made.length = inner * static_cast<uint64_t>(range.end - range.begin);
        made.sha256 = {};
        made_.plan.weights.push_back(std::move(made));
        known->second = static_cast<int>(made_.plan.weights.size()) - 1;
      }
      to.push_back({Operand::weight, known->second});
    }
  }

  // The whole result of a divided node, on each rank that needs it.
  void join(size_t i) {
    const int v = p_.nodes[i].out[0];
    const Layout& l = splits_[i]->out;
    std::vector<Operand> parts;
    std::vector<int> makers;
    int64_t at = 0;
    for (size_t from = 0; from < l.ranges.size(); ++from) {
      if (l.ranges[from].begin != at) continue;  // another rank has the same part
      parts.push_back({Operand::value, pieces_[v][from]}), at = l.ranges[from].end;
      makers.push_back(static_cast<int>(from));
    }
    if (std::find(needs_[v].begin(), needs_[v].end(), true) != needs_[v].end())
      put_joins(i, v, l.axis, parts, makers, true);
  }

  // A value that rank 0 alone computes, for the others.
  void hand_on(size_t i, int v) {
    bool misses = false;
    for (size_t r = 1; r < needs_[v].size(); ++r) misses = misses || (needs_[v][r] && !computes_[i][r]);
    if (in_step_ && misses) {
      const int last = std::max(static_cast<int>(p_.values[v].shape.size()) - 1, 0);
      return put_joins(i, v, last, {{Operand::value, v}}, {0}, false);
    }
    for (int& there : whole_[v])
      if (there < 0) there = v;
  }

  // The nodes that put parts together, on each rank that needs the whole. first: the one of rank 0
  // makes the value of the whole plan.
  void put_joins(size_t i, int v, int axis, const std::vector<Operand>& parts, const std::vector<int>& makers,
                 bool first) {
    const std::string op = SplitRules::join();
    const int number = static_cast<int>(made_.makers.size());
    made_.makers.push_back(makers);
    has_words_ &= size_of(p_.values[v].dtype) % sizeof(uint32_t) == 0;
    for (size_t r = 0; r < needs_[v].size(); ++r) {
      if (!in_step_ && !needs_[v][r]) continue;
      const int whole = r == 0 && first ? v : new_value(v);
      Node n{op, op_info(op)->version, parts, {whole}, -1, {}, {}, p_.nodes[i].origin};
      n.attrs["axis"] = int64_t{axis};
      n.attrs["numerics"] = std::string(op_info(op)->numerics);
      whole_[v][r] = whole;
      put(std::move(n), r, i, number);
    }
  }

  const Plan& p_;
  const int ranks_;
  const bool in_step_;
  bool has_words_ = true;
  std::vector<Layout> layouts_;                      // per value
  std::vector<std::optional<NodeSplit>> splits_;     // per node
  std::vector<std::vector<bool>> needs_, computes_;  // per value, and per node: of which ranks
  std::vector<std::vector<int>> whole_, pieces_;     // per value and rank: its value in the result
  std::map<std::tuple<int, int, int64_t, int64_t, int64_t>, int> slices_;  // weight, axis, matrix, range
  Shards made_;
};

}  // namespace

Result<Shards> shard(const Plan& p, int ranks, bool in_step) {
  if (!p.bodies.empty() || !p.bindings.empty())
    return not_covered("tensor-parallel: a program with control flow or computed sizes is not divided");
  const Unfused layers = unfuse(p);
  Sharding s(layers.plan, ranks, in_step);
  INVAR_CHECK_OK(s.divide());
  s.find_needs();
  INVAR_TRY(Shards made, std::move(s).build());
  for (int& n : made.node_of) n = layers.node_of[n];
  for (int& v : made.value_of) v = layers.value_of[v];
  return made;
}

}  // namespace invar::plan
