// The stages of a decoder, see stages.h.
#include "plan/stages.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "plan/analysis/segment_builder.h"
#include "plan/analysis/shards.h"

namespace invar::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Bytes of one position of a value: what a step of one token holds.
uint64_t bytes_of_token(const Value& v) {
  uint64_t bytes = size_of(v.dtype);
  for (const DimRef& d : v.shape)
    if (d.symbol < 0) bytes *= static_cast<uint64_t>(std::max<int64_t>(d.value, 1));
  return bytes;
}

// Per position of the plan's nodes: bytes of a token that cross from the nodes before it.
std::vector<uint64_t> crossing_bytes(const Plan& p) {
  const size_t end = p.nodes.size();
  std::vector<int> made(p.values.size(), -1), last(p.values.size(), -1);
  for (size_t n = 0; n < end; ++n) {
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value) last[o.index] = static_cast<int>(n);
    for (int v : p.nodes[n].out) made[v] = static_cast<int>(n);
  }
  std::vector<uint64_t> bytes(end + 1), leaving(end + 1);
  uint64_t now = 0;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (made[v] >= 0 && last[v] > made[v]) {
      bytes[made[v] + 1] += bytes_of_token(p.values[v]);
      leaving[last[v] + 1] += bytes_of_token(p.values[v]);
    }
  for (size_t at = 0; at <= end; ++at) now += bytes[at] - leaving[at], bytes[at] = now;
  return bytes;
}

// The first node of every layer, and the end of the nodes.
Result<std::vector<int>> layer_starts(const Plan& p) {
  if (!p.bodies.empty() || !p.bindings.empty())
    return not_covered("a program with control flow or computed sizes is not split by layers");
  std::vector<int> stateful;
  for (size_t n = 0; n < p.nodes.size(); ++n)
    if (p.nodes[n].state >= 0) stateful.push_back(static_cast<int>(n));
  if (stateful.empty())
    return not_covered("the plan has no memory between steps, so its layers are not known");
  const std::vector<uint64_t> crossing = crossing_bytes(p);
  std::vector<int> cuts;
  for (size_t s = 1; s < stateful.size(); ++s) {
    int best = stateful[s];
    for (int at = stateful[s]; at > stateful[s - 1]; --at)
      if (crossing[at] < crossing[best]) best = at;
    cuts.push_back(best);
  }
  // Two states with much alive between them belong to one layer.
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int at : cuts) least = std::min(least, crossing[at]);
  std::erase_if(cuts, [&](int at) { return crossing[at] / 2 > least; });
  std::vector<int> starts{0};
  starts.insert(starts.end(), cuts.begin(), cuts.end());
  starts.push_back(static_cast<int>(p.nodes.size()));
  return starts;
}

// The cost of some nodes.
class CostSum {
 public:
  explicit CostSum(const Plan& p) : p_(p), seen_(p.weights.size()) {}
  void add(int begin, int end) {
    for (int n = begin; n < end; ++n) {
      const Node& node = p_.nodes[n];
      const bool lookup = looks_up(p_, node);
      bool has_value = false;
      for (const Operand& o : node.in) has_value |= o.kind == Operand::value;
      for (const Operand& o : node.in) {
        if (o.kind == Operand::value) continue;
        const Weight& w = p_.weights[o.index];
        uint64_t elements = 1;
        for (int64_t d : w.shape) elements *= static_cast<uint64_t>(d);
        const uint64_t bytes = elements * size_of(w.dtype);
        if (!seen_[o.index]) cost_.weights += bytes;
        seen_[o.index] = true;
        if (!lookup && has_value && w.shape.size() > 1) cost_.products += elements, cost_.read += bytes;
      }
    }
  }
  const StageCost& cost() const { return cost_; }

 private:
  const Plan& p_;
  std::vector<bool> seen_;
  StageCost cost_;
};

// The best cut of blocks into stages by dynamic programming. share[i][j]: of blocks [i, j).
std::vector<int> best_cut(const std::vector<std::vector<double>>& share, int blocks, int count) {
  using Table = std::vector<std::vector<double>>;
  const Table empty(count + 1, std::vector<double>(blocks + 1, kNever));
  Table most = empty;  // [n][i]: of blocks [i, end) in n stages
  most[0][blocks] = 0;
  for (int n = 1; n <= count; ++n)
    for (int i = 0; i < blocks; ++i)
      for (int j = i + 1; j <= blocks; ++j)
        most[n][i] = std::min(most[n][i], std::max(share[i][j], most[n - 1][j]));
  const double bound = most[count][0];
  Table squares = empty;
  squares[0][blocks] = 0;
  for (int n = 1; n <= count; ++n)
    for (int i = 0; i < blocks; ++i)
      for (int j = i + 1; j <= blocks; ++j)
        if (share[i][j] <= bound)
          squares[n][i] = std::min(squares[n][i], share[i][j] * share[i][j] + squares[n - 1][j]);
  std::vector<int> cut{0};
  for (int n = count; n > 0; --n) {
    const int i = cut.back();
    int j = i + 1;
    while (!(share[i][j] <= bound && share[i][j] * share[i][j] + squares[n - 1][j] == squares[n][i])) ++j;
    cut.push_back(j);
  }
  return cut;
}

// Per value: whether the node of some state depends on it.
std::vector<bool> values_that_feed(const Plan& p) {
  std::vector<bool> feeds(p.values.size());
  for (auto n = p.nodes.rbegin(); n != p.nodes.rend(); ++n) {
    bool needed = n->state >= 0;
    for (int v : n->out) needed = needed || feeds[v];
    for (const Operand& o : n->in)
      if (needed && o.kind == Operand::value) feeds[o.index] = true;
  }
  return feeds;
}

// Per join within a step: whether a state of any rank depends on it.
std::vector<bool> feeding_joins(const Shards& shards, const std::vector<bool>& feeds) {
  std::vector<bool> any(shards.makers.size());
  for (size_t n = 0; n < shards.join_of.size(); ++n)
    if (const int j = shards.join_of[n]; j >= 0) any[j] = any[j] || feeds[shards.plan.nodes[n].out[0]];
  return any;
}

// The joins of a stage, whose nodes are those numbers of the plan of all ranks.
void add_joins(const Shards& shards, const std::vector<int>& nodes, const std::vector<bool>& feeding,
               Stage& stage) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int join = shards.join_of[nodes[i]];
    if (join < 0) continue;
    stage.joins.push_back({static_cast<int>(i), shards.makers[join]});
    if (feeding[join]) stage.feeding_outputs.push_back(stage.segment.plan.nodes[i].out[0]);
  }
}

// The stages of a plan, which have their layers already. stage_of: of every node; a stage reads
// from earlier ones alone. numbers: of the nodes, for people.
void fill_stages(const Plan& p, const std::vector<int>& stage_of, const std::vector<int>& numbers,
                 std::vector<Stage>& stages, const Shards* in_step = nullptr) {
  const SymbolUses uses(p);
  const std::vector<bool> feeds = values_that_feed(p);
  const std::vector<bool> feeding = in_step ? feeding_joins(*in_step, feeds) : std::vector<bool>();
  std::vector<int> made_at(p.values.size(), -1);
  // Read by other stages; of these, by ones that are not of the same rank.
  std::vector<bool> is_handed_over(p.values.size()), leaves(p.values.size());
  std::vector<std::vector<int>> nodes(stages.size()), values(stages.size());
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    nodes[stage_of[n]].push_back(static_cast<int>(n));
    for (int v : p.nodes[n].out) made_at[v] = stage_of[n];
    if (in_step && in_step->join_of[n] >= 0) continue;
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value && made_at[o.index] >= 0 && made_at[o.index] != stage_of[n]) {
        const Stage &from = stages[made_at[o.index]], &to = stages[stage_of[n]];
        is_handed_over[o.index] = true;
        if (from.rank != to.rank || from.partition != to.partition) leaves[o.index] = true;
      }
  }
  for (size_t v = 0; v < p.values.size(); ++v)
    if (is_handed_over[v]) values[made_at[v]].push_back(static_cast<int>(v));
  for (size_t s = 0; s < stages.size(); ++s) {
    Stage& stage = stages[s];
    SegmentBuilder builder(p, uses, made_at, static_cast<int>(s));
    CostSum sum(p);
    for (int n : nodes[s]) builder.add(p.nodes[n], numbers[n]), sum.add(n, n + 1);
    stage.cost = sum.cost();
    for (int v : values[s]) {
      builder.keep(v);
      if (leaves[v]) stage.cost.handed_over += bytes_of_token(p.values[v]);
    }
    for (const Port& o : p.outputs)
      if (made_at[o.value] == static_cast<int>(s)) builder.keep(o.value);
    stage.segment = std::move(builder).finish();
    for (size_t o = 0; o < stage.segment.outputs.size(); ++o)
      if (const int v = stage.segment.outputs[o]; feeds[v] && is_handed_over[v])
        stage.feeding_outputs.push_back(stage.segment.plan.outputs[o].value);
    if (in_step) add_joins(*in_step, nodes[s], feeding, stage);
  }
}

// The ends of partitions: layers and nodes.
struct Bounds {
  std::vector<int> layers, nodes;
};

Result<Bounds> layer_bounds(const Plan& p, int count) {
  INVAR_TRY(const std::vector<int> starts, layer_starts(p));
  const int blocks = static_cast<int>(starts.size()) - 1;
  if (count < 1) return bad_input("a model has at least 1 partition, not " + std::to_string(count));
  if (count > blocks)
    return bad_input(std::to_string(count) + " partitions: the model has " + std::to_string(blocks) +
                     " layer" + (blocks == 1 ? "" : "s") + ", and a partition has at least one of them");
  CostSum all(p);
  all.add(0, starts.back());
  const double bytes = std::max<double>(static_cast<double>(all.cost().weights), 1),
               products = std::max<double>(static_cast<double>(all.cost().products), 1);
  std::vector<std::vector<double>> share(blocks + 1, std::vector<double>(blocks + 1, kNever));
  for (int i = 0; i < blocks; ++i) {
    CostSum sum(p);
    for (int j = i + 1; j <= blocks; ++j) {
      sum.add(starts[j - 1], starts[j]);
      share[i][j] = std::max(static_cast<double>(sum.cost().weights) / bytes,
                             static_cast<double>(sum.cost().products) / products);
    }
  }
  Bounds cut{best_cut(share, blocks, count), {}};
  for (int block : cut.layers) cut.nodes.push_back(starts[block]);
  return cut;
}

// Per node of a divided plan its stage: a partition of a rank is cut wherever ranks read what
// others have computed, for all of them at once, so that they keep step; not so where they join
// within the step. Makes the stages, in an order in which they can run.
std::vector<int> stages_of(const Shards& s, const Bounds& cut, bool in_step, std::vector<Stage>& stages) {
  const Plan& p = s.plan;
  std::vector<int> maker(p.values.size(), -1), partition_of;
  std::vector<std::tuple<int, int, int>> place;  // depth, partition, rank
  std::vector<bool> crosses(p.values.size());    // another rank reads it
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value && maker[o.index] >= 0 && s.rank_of[maker[o.index]] != s.rank_of[n])
        crosses[o.index] = true;
    for (int v : p.nodes[n].out) maker[v] = static_cast<int>(n);
  }
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    const auto after = std::upper_bound(cut.nodes.begin(), cut.nodes.end(), s.node_of[n]);
    const int partition = static_cast<int>(after - cut.nodes.begin()) - 1;
    int depth = 0;
    for (const Operand& o : p.nodes[n].in) {
      if (in_step || o.kind != Operand::value || maker[o.index] < 0) continue;
      const auto& [before, its_partition, rank] = place[maker[o.index]];
      depth = std::max(depth, before + (its_partition != partition || crosses[o.index]));
    }
    place.emplace_back(depth, partition, s.rank_of[n]);
  }
  std::vector<std::tuple<int, int, int>> all = place;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const auto& [depth, partition, rank] : all) {
    Stage& stage = stages.emplace_back();
    stage.partition = partition, stage.rank = rank;
    stage.first_layer = cut.layers[partition];
    stage.layers = cut.layers[partition + 1] - cut.layers[partition];
  }
  std::vector<int> stage_of;
  for (const auto& one : place)
    stage_of.push_back(static_cast<int>(std::lower_bound(all.begin(), all.end(), one) - all.begin()));
  return stage_of;
}

}  // namespace

Result<int> layer_count(const Plan& p) {
  INVAR_TRY(const std::vector<int> starts, layer_starts(p));
  return static_cast<int>(starts.size()) - 1;
}

Result<std::vector<Stage>> split_by_layers(const Plan& p, int count) {
  INVAR_TRY(const Bounds cut, layer_bounds(p, count));
  std::vector<Stage> stages(static_cast<size_t>(count));
  std::vector<int> stage_of, numbers(p.nodes.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int s = 0; s < count; ++s) {
    stage_of.resize(static_cast<size_t>(cut.nodes[s + 1]), s);
    stages[s].first_layer = cut.layers[s], stages[s].layers = cut.layers[s + 1] - cut.layers[s];
    stages[s].partition = s;
  }
  fill_stages(p, stage_of, numbers, stages);
  return stages;
}

Result<std::vector<Stage>> split(const Plan& p, int partitions, int ranks, bool in_step) {
  if (ranks == 1) return split_by_layers(p, partitions);
  INVAR_TRY(const Bounds cut, layer_bounds(p, partitions));
  INVAR_TRY(const Shards shards, shard(p, ranks, in_step));
  std::vector<Stage> stages;
  const std::vector<int> stage_of = stages_of(shards, cut, in_step, stages);
  fill_stages(shards.plan, stage_of, shards.node_of, stages, in_step ? &shards : nullptr);
  for (Stage& s : stages)
    for (int v : s.segment.values) s.value_numbers.push_back(shards.value_of[v]);
  return stages;
}

std::vector<RankCost> rank_costs(const std::vector<Stage>& stages) {
  std::map<std::pair<int, int>, RankCost> found;
  for (const Stage& s : stages) {
    const auto [at, is_new] = found.try_emplace({s.partition, s.rank});
    RankCost& r = at->second;
    if (is_new) r = {s.partition, s.rank, s.first_layer, s.layers};
    r.gathers += !is_new;
    r.cost.weights += s.cost.weights, r.cost.products += s.cost.products, r.cost.read += s.cost.read;
    r.cost.state += s.cost.state, r.cost.fixed_state += s.cost.fixed_state;
    r.cost.handed_over += s.cost.handed_over;
  }
  std::vector<RankCost> all;
  for (const auto& [place, cost] : found) all.push_back(cost);
  return all;
}

std::string stage_report(const std::vector<RankCost>& all, const StageSpeed& speed) {
  const bool ranked = std::any_of(all.begin(), all.end(), [](const RankCost& r) { return r.rank > 0; });
  char line[200];
  std::snprintf(line, sizeof line, "times at %.3g GB/s of memory and %.3g T products/s\n",
                speed.bytes_per_second * 1e-9, speed.products_per_second * 1e-12);
  std::string text = std::string(line) + "stage  " + (ranked ? "rank  gathers  " : "") +
                     "layers      weights GB  state B/token  state B/sequence  hand over B/token  decode ms  "
                     "prompt ms/token\n";
  for (const RankCost& r : all) {
    const StageCost& c = r.cost;
    const std::string layers =
        std::to_string(r.first_layer) + "-" + std::to_string(r.first_layer + r.layers - 1);
    const double decode = static_cast<double>(c.read) / speed.bytes_per_second * 1e3;
    const double prompt = static_cast<double>(c.products) / speed.products_per_second * 1e3;
    std::snprintf(line, sizeof line, "%5d  ", r.partition);
    text += line;
    if (ranked) std::snprintf(line, sizeof line, "%4d  %7d  ", r.rank, r.gathers), text += line;
    std::snprintf(line, sizeof line, "%-10s  %10.3f  %13llu  %16llu  %17llu  %9.3f  %15.5f\n", layers.c_str(),
                  static_cast<double>(c.weights) * 1e-9, static_cast<unsigned long long>(c.state),
                  static_cast<unsigned long long>(c.fixed_state),
                  static_cast<unsigned long long>(c.handed_over), decode, prompt);
    text += line;
  }
  return text;
}

}  // namespace invar::plan
