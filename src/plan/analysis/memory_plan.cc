// The memory planner: which values share a buffer slot, from their lifetimes and sizes. This is
// tuning: no choice made here reaches the bits.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "plan/memory_plan.h"
#include "shape/dim_expr.h"

namespace invar::plan {
namespace {

double bytes_of(const Value& v, std::span<const double> sizes) {
  double bytes = static_cast<double>(size_of(v.dtype));
  for (const DimRef& d : v.shape) bytes *= d.symbol < 0 ? static_cast<double>(d.value) : sizes[d.symbol];
  return bytes;
}

// The live range of a value: from the node that makes it to the last one that reads it.
struct LiveRange {
  int value, first, last;
  double bytes;
};

struct Assignment {
  std::vector<int> slot;  // per live range
  double bytes = 0;
  size_t slots = 0;
};

// Linear scan in the order of the nodes: takes the free slot that grows or wastes least, of equals
// the first.
Assignment linear_scan(const std::vector<LiveRange>& ranges) {
  Assignment made;
  std::vector<double> slots;              // bytes
  std::set<std::pair<double, int>> free;  // bytes, slot
  std::set<std::pair<int, int>> taken;    // last use, slot
  const auto best_for = [&](double bytes) {
    const auto above = free.lower_bound({bytes, -1});
    if (above == free.begin()) return above;
    const auto below = free.lower_bound({std::prev(above)->first, -1});
    if (above == free.end()) return below;
    const double waste = above->first - bytes, growth = bytes - below->first;
    return growth < waste || (growth == waste && below->second < above->second) ? below : above;
  };
  for (const LiveRange& range : ranges) {
    while (!taken.empty() && taken.begin()->first < range.first) {
      const int slot = taken.begin()->second;
      free.insert({slots[slot], slot});
      taken.erase(taken.begin());
    }
    int slot = static_cast<int>(slots.size());
    if (const auto best = best_for(range.bytes); best != free.end()) {
      slot = best->second;
      free.erase(best);
      slots[slot] = std::max(slots[slot], range.bytes);
    } else {
      slots.push_back(range.bytes);
    }
    taken.insert({range.last, slot});
    made.slot.push_back(slot);
  }
  for (double bytes : slots) made.bytes += bytes;
  made.slots = slots.size();
  return made;
}

// Greedy by size: large values first, each into the first slot whose live ranges do not overlap.
// Gives up (nullopt) where too many slots must be tried.
std::optional<Assignment> greedy_by_size(const std::vector<LiveRange>& ranges) {
  size_t tries = 64 * ranges.size() + (size_t{1} << 16);
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranges[a].bytes > ranges[b].bytes; });
  Assignment made;
  made.slot.resize(ranges.size());
  std::vector<std::map<int, int>> slots;  // per slot: first -> last of its live ranges
  for (size_t i : order) {
    const LiveRange& range = ranges[i];
    const auto fits = [&](const std::map<int, int>& taken) {
      const auto next = taken.upper_bound(range.last);
      return next == taken.begin() || std::prev(next)->second < range.first;
    };
    size_t slot = 0;
    for (; slot < slots.size() && !fits(slots[slot]); ++slot)
      if (tries-- == 0) return std::nullopt;
    if (slot == slots.size()) slots.emplace_back(), made.bytes += range.bytes;
    slots[slot][range.first] = range.last;
    made.slot[i] = static_cast<int>(slot);
  }
  made.slots = slots.size();
  return made;
}

}  // namespace

std::vector<double> typical_sizes(const Plan& p) {
  std::vector<double> sizes;
  for (const DimExpr& symbol : p.symbols) {
    const auto typical = [](const std::string&) { return std::optional<int64_t>(kTypical); };
    const std::optional<int64_t> size = symbol.evaluate(typical);
    sizes.push_back(static_cast<double>(std::max<int64_t>(size.value_or(kTypical), 1)));
  }
  return sizes;
}

SlotAssignment plan_memory(const Plan& p, std::span<const int> group, std::span<const int> shares_slot_with,
                           std::span<const int> view_of, std::span<const double> typical) {
  return plan_memory(
      p, {.group = group, .shares_slot_with = shares_slot_with, .view_of = view_of, .typical = typical});
}

SlotAssignment plan_memory(const Plan& p, const MemoryRules& rules) {
  const std::span<const int> group = rules.group, shares_slot_with = rules.shares_slot_with,
                             view_of = rules.view_of;
  const std::span<const double> typical = rules.typical;
  const int end = static_cast<int>(p.nodes.size());
  const auto group_of = [&](int n) { return group.empty() ? n : group[n]; };
  std::vector<int> last_use(p.values.size(), -1);
  for (int n = 0; n < end; ++n) {
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value) last_use[o.index] = group_of(n);
    for (int v : p.nodes[n].out) last_use[v] = std::max(last_use[v], group_of(n));
  }
  for (const Port& o : p.outputs) last_use[o.value] = end;
  const auto is_view = [&](int v) { return !view_of.empty() && view_of[v] >= 0; };
  for (const std::span<const int> bases :
       {view_of, rules.keeps})  // a view's base may itself keep another value
    for (size_t v = 0; v < bases.size(); ++v)
      if (bases[v] >= 0) last_use[bases[v]] = std::max(last_use[bases[v]], last_use[v]);

  const std::vector<double> own = typical.empty() ? typical_sizes(p) : std::vector<double>();
  const std::span<const double> sizes = typical.empty() ? own : typical;
  std::vector<LiveRange> ranges;
  for (int n = 0; n < end; ++n)
    for (int v : p.nodes[n].out)
      if ((shares_slot_with.empty() || shares_slot_with[v] < 0) && !is_view(v) && p.nodes[n].bodies.empty())
        ranges.push_back({v, group_of(n), last_use[v], bytes_of(p.values[v], sizes)});
  Assignment best = linear_scan(ranges);
  // With linear scan neighbours seldom share a slot, so more of them can run concurrently
  // (mark_concurrent in src/run). The other plan must save a tenth to be worth more than that.
  if (std::optional<Assignment> other = greedy_by_size(ranges); other && other->bytes < 0.9 * best.bytes)
    best = *std::move(other);
  SlotAssignment slots{std::vector<int>(p.values.size(), -1), static_cast<int>(best.slots)};
  for (size_t i = 0; i < ranges.size(); ++i) slots.slot_of[ranges[i].value] = best.slot[i];
  for (int n = end; !shares_slot_with.empty() && n-- > 0;)  // resolves chains from their end
    for (int v : p.nodes[n].out)
      if (shares_slot_with[v] >= 0) slots.slot_of[v] = slots.slot_of[shares_slot_with[v]];
  for (size_t v = 0; v < view_of.size(); ++v)
    if (view_of[v] >= 0) slots.slot_of[v] = slots.slot_of[view_of[v]];
  for (const Port& i : p.inputs) slots.slot_of[i.value] = -1;
  return slots;
}

void assign_slots(Plan& p, std::span<const double> typical) {
  const SlotAssignment slots = plan_memory(p, {.typical = typical});
  for (size_t v = 0; v < p.values.size(); ++v) p.values[v].slot = slots.slot_of[v];
  p.slots = slots.count;
}

}  // namespace invar::plan
