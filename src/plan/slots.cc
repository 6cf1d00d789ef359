// Buffer planning: which values share memory. Tuning: no choice made here reaches the bits.
#include <algorithm>
#include <set>

#include "plan/plan.h"

namespace invar::plan {
namespace {

// Bytes if every symbol were `kTypical`: good enough to tell big values from small ones.
constexpr double kTypical = 64;

double typical_bytes(const Value& v) {
  double bytes = static_cast<double>(size_of(v.dtype));
  for (const Dim& d : v.shape) bytes *= d.symbol < 0 ? static_cast<double>(d.value) : kTypical;
  return bytes;
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

  std::vector<double> slots;              // bytes
  std::set<std::pair<double, int>> free;  // bytes, slot
  std::set<std::pair<int, int>> taken;    // last use, slot
  // Of the free slots the one that grows or wastes least, of equals the first.
  const auto best_for = [&](double bytes) {
    const auto above = free.lower_bound({bytes, -1});
    if (above == free.begin()) return above;
    const auto below = free.lower_bound({std::prev(above)->first, -1});
    if (above == free.end()) return below;
    const double waste = above->first - bytes, growth = bytes - below->first;
    return growth < waste || (growth == waste && below->second < above->second) ? below : above;
  };
  for (int n = 0; n < end; ++n) {
    while (!taken.empty() && taken.begin()->first < n) {
      const int slot = taken.begin()->second;
      free.insert({slots[slot], slot});
      taken.erase(taken.begin());
    }
    for (int v : p.nodes[n].out) {
      const double bytes = typical_bytes(p.values[v]);
      int slot = static_cast<int>(slots.size());
      if (const auto best = best_for(bytes); best != free.end()) {
        slot = best->second;
        free.erase(best);
        slots[slot] = std::max(slots[slot], bytes);
      } else {
        slots.push_back(bytes);
      }
      taken.insert({last_use[v], slot});
      p.values[v].slot = slot;
    }
  }
  for (const Port& i : p.inputs) p.values[i.value].slot = -1;  // fed by the caller
  p.slots = static_cast<int>(slots.size());
}

}  // namespace invar::plan
