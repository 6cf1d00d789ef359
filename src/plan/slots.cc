// Buffer planning: which values share memory. Tuning: no choice made here reaches the bits.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "plan/plan.h"

namespace invar::plan {
namespace {

// Bytes if every symbol were `kTypical`: good enough to tell big values from small ones.
double typical_bytes(const Value& v) {
  double bytes = static_cast<double>(size_of(v.dtype));
  for (const Dim& d : v.shape) bytes *= d.symbol < 0 ? static_cast<double>(d.value) : double{kTypical};
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

// Large values first, each into the smallest slot where nothing lives at the same time. Nothing where that takes many tries: where many
// values live at once, slots are many.
std::optional<Assignment> by_size(const std::vector<Life>& lives) {
  size_t tries = 64 * lives.size() + (size_t{1} << 16);
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lives[a].bytes > lives[b].bytes; });
  Assignment made;
  made.slot.resize(lives.size());
  std::vector<std::map<int, int>> slots;  // first -> last of what lives there; the newest slot is the smallest
  for (size_t i : order) {
    const Life& life = lives[i];
    const auto fits = [&](const std::map<int, int>& there) {
      const auto next = there.upper_bound(life.last);
      return next == there.begin() || std::prev(next)->second < life.first;
    };
    size_t slot = slots.size();
    for (size_t k = slots.size(); k-- > 0 && slot == slots.size();) {
      if (tries-- == 0) return std::nullopt;
      if (fits(slots[k])) slot = k;
    }
    if (slot == slots.size()) slots.emplace_back(), made.bytes += life.bytes;
    slots[slot][life.first] = life.last;
    made.slot[i] = static_cast<int>(slot);
  }
  made.slots = slots.size();
  return made;
}

}  // namespace

void assign_slots(Plan& p) {
  const int end = static_cast<int>(p.nodes.size());
  std::vector<int> last_use(p.values.size(), -1);
  for (int n = 0; n < end; ++n) {
    for (const Operand& o : p.nodes[n].in)
      if (o.kind == Operand::value) last_use[o.index] = n;
    for (int v : p.nodes[n].out) last_use[v] = std::max(last_use[v], n);
  }
  for (const Port& o : p.outputs) last_use[o.value] = end;

  std::vector<Life> lives;
  for (int n = 0; n < end; ++n)
    for (int v : p.nodes[n].out) lives.push_back({v, n, last_use[v], typical_bytes(p.values[v])});
  Assignment best = in_order(lives);
  if (std::optional<Assignment> other = by_size(lives); other && other->bytes < best.bytes)
    best = *std::move(other);
  for (size_t i = 0; i < lives.size(); ++i) p.values[lives[i].value].slot = best.slot[i];
  for (const Port& i : p.inputs) p.values[i.value].slot = -1;  // fed by the caller
  p.slots = static_cast<int>(best.slots);
}

}  // namespace invar::plan
