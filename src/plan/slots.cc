// Buffer planning: which values share memory. Tuning: no choice made here reaches the bits.
#include <algorithm>
#include <cmath>

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

  struct Slot {
    double bytes;
    int free_after;
  };
  std::vector<Slot> slots;
  for (int n = 0; n < end; ++n) {
    for (int v : p.nodes[n].out) {
      // Of the free slots the one that grows or wastes least.
      const double bytes = typical_bytes(p.values[v]);
      int best = -1;
      for (int s = 0; s < static_cast<int>(slots.size()); ++s) {
        if (slots[s].free_after >= n) continue;
        if (best < 0 || std::abs(slots[s].bytes - bytes) < std::abs(slots[best].bytes - bytes)) best = s;
      }
      if (best < 0) {
        best = static_cast<int>(slots.size());
        slots.push_back({0, 0});
      }
      slots[best] = {std::max(slots[best].bytes, bytes), last_use[v]};
      p.values[v].slot = best;
    }
  }
  for (const Port& i : p.inputs) p.values[i.value].slot = -1;  // fed by the caller
  p.slots = static_cast<int>(slots.size());
}

}  // namespace invar::plan
