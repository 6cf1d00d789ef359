// Buffer planning: which values share memory. Tuning: no choice made here reaches the bits.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "shape/dim_expr.h"
#include "plan/plan.h"

namespace invar::plan {
namespace {

double bytes_of(const Value& v, std::span<const double> sizes) {
  double bytes = static_cast<double>(size_of(v.dtype));
  for (const Dim& d : v.shape) bytes *= d.symbol < 0 ? static_cast<double>(d.value) : sizes[d.symbol];
  return bytes;
}

// From the node that makes a value to the last that reads it.
struct Life {
  int value, first, last;
  double bytes;
};

struct Assignment {
  std::vector<int> slot;  // of each life
  double bytes = 0;
  size_t slots = 0;
};

// In the order of the nodes: of the free slots the one that grows or wastes least, of equals the first.
Assignment in_order(const std::vector<Life>& lives) {
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
  for (const Life& life : lives) {
    while (!taken.empty() && taken.begin()->first < life.first) {
      const int slot = taken.begin()->second;
      free.insert({slots[slot], slot});
      taken.erase(taken.begin());
    }
    int slot = static_cast<int>(slots.size());
    if (const auto best = best_for(life.bytes); best != free.end()) {
      slot = best->second;
      free.erase(best);
      slots[slot] = std::max(slots[slot], life.bytes);
    } else {
      slots.push_back(life.bytes);
    }
    taken.insert({life.last, slot});
    made.slot.push_back(slot);
  }
  for (double bytes : slots) made.bytes += bytes;
  made.slots = slots.size();
  return made;
}

// Large values first, each into the first slot where nothing lives at the same time. Nothing where that takes many tries: where many
// values live at once, slots are many.
std::optional<Assignment> by_size(const std::vector<Life>& lives) {
  size_t tries = 64 * lives.size() + (size_t{1} << 16);
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lives[a].bytes > lives[b].bytes; });
  Assignment made;
  made.slot.resize(lives.size());
  std::vector<std::map<int, int>> slots;  // first -> last of what lives there
  for (size_t i : order) {
    const Life& life = lives[i];
    const auto fits = [&](const std::map<int, int>& there) {
      const auto next = there.upper_bound(life.last);
      return next == there.begin() || std::prev(next)->second < life.first;
    };
    size_t slot = 0;
    for (; slot < slots.size() && !fits(slots[slot]); ++slot)
      if (tries-- == 0) return std::nullopt;
    if (slot == slots.size()) slots.emplace_back(), made.bytes += life.bytes;
    slots[slot][life.first] = life.last;
    made.slot[i] = static_cast<int>(slot);
  }
  made.slots = slots.size();
  return made;
}

}  // namespace

std::vector<double> typical_sizes(const Plan& p) {
  std::vector<double> sizes;
  for (const std::string& symbol : p.symbols) {
    const std::optional<Polynomial> sum = Polynomial::parse(symbol);
    const auto typical = [](const std::string&) { return std::optional<int64_t>(kTypical); };
    const std::optional<int64_t> size = sum ? sum->value(typical) : std::nullopt;
    sizes.push_back(static_cast<double>(std::max<int64_t>(size.value_or(kTypical), 1)));
  }
  return sizes;
}

Slots slots_of(const Plan& p, std::span<const int> step, std::span<const int> host,
               std::span<const int> within, std::span<const double> typical) {
  const int end = static_cast<int>(p.nodes.size());
  const auto when = [&](int n) { return step.empty() ? n : step[n]; };
  std::vector<int> last_use(p.values.size(), -1);
  for (int n = 0; n < end; ++n) {
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value) last_use[o.index] = when(n);
    for (int v : p.nodes[n].out) last_use[v] = std::max(last_use[v], when(n));
  }
  for (const Port& o : p.outputs) last_use[o.value] = end;
  const auto is_part = [&](int v) { return !within.empty() && within[v] >= 0; };
  for (size_t v = 0; v < within.size(); ++v)
    if (within[v] >= 0) last_use[within[v]] = std::max(last_use[within[v]], last_use[v]);

  const std::vector<double> own = typical.empty() ? typical_sizes(p) : std::vector<double>();
  const std::span<const double> sizes = typical.empty() ? own : typical;
  std::vector<Life> lives;
  for (int n = 0; n < end; ++n)
    for (int v : p.nodes[n].out)
      if ((host.empty() || host[v] < 0) && !is_part(v) && p.nodes[n].bodies.empty())
        lives.push_back({v, when(n), last_use[v], bytes_of(p.values[v], sizes)});
  Assignment best = in_order(lives);
  // In order, neighbours seldom share: more of them can run together (mark_joins in src/run).
  if (std::optional<Assignment> other = by_size(lives); other && other->bytes < 0.9 * best.bytes)
    best = *std::move(other);
  Slots slots{std::vector<int>(p.values.size(), -1), static_cast<int>(best.slots)};
  for (size_t i = 0; i < lives.size(); ++i) slots.of[lives[i].value] = best.slot[i];
  for (int n = end; !host.empty() && n-- > 0;)  // a host may have one
    for (int v : p.nodes[n].out)
      if (host[v] >= 0) slots.of[v] = slots.of[host[v]];
  for (size_t v = 0; v < within.size(); ++v)
    if (within[v] >= 0) slots.of[v] = slots.of[within[v]];
  for (const Port& i : p.inputs) slots.of[i.value] = -1;
  return slots;
}

void assign_slots(Plan& p, std::span<const double> typical) {
  const Slots slots = slots_of(p, {}, {}, {}, typical);
  for (size_t v = 0; v < p.values.size(); ++v) p.values[v].slot = slots.of[v];
  p.slots = slots.count;
}

}  // namespace invar::plan
