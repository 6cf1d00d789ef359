// The memory footprint of a plan: the bytes of its buffers, and the peak of its live values, which
// is the least that any assignment of buffers needs.
#include <algorithm>

#include "plan/keywords.h"
#include "plan/plan.h"
#include "shape/dim_expr.h"

namespace invar::plan {
namespace {

using Sizes = std::map<std::string, int64_t>;

using Sum = std::optional<DimExpr>;

// Bytes of a value as an expression of the symbols; nullopt if they overflow.
Sum bytes_of(const Value& v, const std::vector<DimExpr>& symbols) {
  Sum bytes = static_cast<int64_t>(size_of(v.dtype));
  for (const DimRef& d : v.shape) {
    const DimExpr dim = d.symbol < 0 ? DimExpr(d.value) : symbols[d.symbol];
    bytes = bytes ? product(*bytes, dim) : std::nullopt;
  }
  return bytes;
}

bool add(int64_t& total, int64_t more) {
  return !__builtin_add_overflow(total, more, &total);
}

// The node at which most bytes are alive, and the values that are alive there.
struct Peak {
  int64_t bytes = 0;
  int node = 0;
  std::vector<int> values{};
};

// A value lives from its node to the last node that reads it, outputs and inputs to the end. The
// peak of the larger body adds to a control-flow node. Nullopt if the bytes overflow.
std::optional<Peak> find_peak(const Plan& p, const std::vector<int64_t>& bytes,
                              const std::vector<Node>& nodes, const std::vector<int>& inputs,
                              const std::vector<int>& outputs) {
  const int end = static_cast<int>(nodes.size());
  struct LiveRange {
    int first = -1, last = -1;
  };
  std::map<int, LiveRange> ranges;
  for (int n = 0; n < end; ++n) {
    for (const Operand& o : nodes[n].in)
      if (o.kind == Operand::value) ranges[o.index].last = n;
    for (int v : nodes[n].out) ranges[v] = {n, n};
  }
  for (int v : outputs) ranges[v].last = end;
  for (int v : inputs) ranges[v] = {-1, end};
  int64_t now = 0;
  for (int v : inputs)
    if (!add(now, bytes[v])) return std::nullopt;
  std::vector<std::vector<int>> dying(end + 1);
  Peak peak;
  for (int n = 0; n < end; ++n) {
    for (int v : nodes[n].out) {
      if (!add(now, bytes[v])) return std::nullopt;
      dying[ranges[v].last].push_back(v);
    }
    Peak within;
    for (int b : nodes[n].bodies) {
      const Body& body = p.bodies[b];
      std::optional<Peak> other = find_peak(p, bytes, body.nodes, body.inputs, body.outputs);
      if (!other) return std::nullopt;
      if (other->bytes >= within.bytes) within = *std::move(other);
    }
    int64_t here = now;
    if (!add(here, within.bytes)) return std::nullopt;
    if (here > peak.bytes || n == 0) peak = {here, n, std::move(within.values)};
    for (int v : dying[n]) now -= bytes[v];
  }
  for (const auto& [v, range] : ranges)
    if (range.first <= peak.node && peak.node <= range.last) peak.values.push_back(v);
  return peak;
}

}  // namespace

Result<Footprint> footprint(const Plan& p, const Sizes& given) {
  const auto too_many = [] { return bad_input("more bytes than can be counted: give smaller sizes"); };
  Sizes sizes;
  for (const DimExpr& symbol : p.symbols)
    if (const std::string* name = symbol.as_symbol()) sizes[*name] = kTypical;
  for (const auto& [name, size] : given) {
    if (!sizes.contains(name)) return bad_input("size of '" + name + "': the plan has no such dimension");
    if (size < 0) return bad_input("size of '" + name + "': " + std::to_string(size));
    sizes[name] = size;
  }
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    const auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional(it->second);
  };
  std::vector<DimExpr> text;
  std::vector<int64_t> bytes;
  for (const Value& v : p.values) {
    const Sum sum = bytes_of(v, p.symbols);
    const std::optional<int64_t> value = sum ? sum->evaluate(lookup) : std::nullopt;
    if (!value) return too_many();
    // An expression with a difference may be below 0 at these sizes; then no call has them.
    text.push_back(*sum), bytes.push_back(std::max<int64_t>(*value, 0));
  }

  Footprint f;
  for (const Weight& w : p.weights)
    if (!add(f.weights, static_cast<int64_t>(w.length))) return too_many();
  std::vector<int> inputs, outputs;
  for (const Port& i : p.inputs) inputs.push_back(i.value);
  for (const Port& o : p.outputs) outputs.push_back(o.value);
  const std::optional<Peak> peak = find_peak(p, bytes, p.nodes, inputs, outputs);
  if (!peak) return too_many();
  f.live = peak->bytes, f.node = peak->node;
  for (int v : inputs)
    if (!add(f.buffers, bytes[v])) return too_many();
  for (const BlockPartition& block : partition(p))
    for (const Segment& segment : block.segments) {  // each has slots of its own
      std::vector<int64_t> slots(segment.plan.slots, 0);
      for (size_t v = 0; v < segment.values.size(); ++v)
        if (const int slot = segment.plan.values[v].slot; slot >= 0)
          slots[slot] = std::max(slots[slot], bytes[segment.values[v]]);
      for (int64_t slot : slots)
        if (!add(f.buffers, slot)) return too_many();
    }
  Sum total = 0;
  for (int v : peak->values)
    if (total) total = sum(*total, text[v]);
  if (total) f.formula = total->text();
  return f;
}

}  // namespace invar::plan
