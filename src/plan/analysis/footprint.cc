// What a plan needs of memory, and the least that any assignment of buffers would need.
#include <algorithm>

#include "shape/dim_expr.h"
#include "plan/plan.h"
#include "plan/keywords.h"

namespace invar::plan {
namespace {

using Sizes = std::map<std::string, int64_t>;

using Sum = std::optional<Polynomial>;

// Bytes of a value, as a sum in the symbols; nothing where they are too many.
Sum bytes_of(const Value& v, const std::vector<Sum>& symbols) {
  Sum bytes = static_cast<int64_t>(size_of(v.dtype));
  for (const Dim& d : v.shape) {
    const Sum dim = d.symbol < 0 ? Sum(d.value) : symbols[d.symbol];
    bytes = bytes && dim ? product(*bytes, *dim) : std::nullopt;
  }
  return bytes;
}

bool add(int64_t& total, int64_t more) {
  return !__builtin_add_overflow(total, more, &total);
}

// Where most bytes are alive, and which values that are.
struct Most {
  int64_t bytes = 0;
  int node = 0;
  std::vector<int> values{};
};

// Each value lives from its node to the last that reads it, outputs and inputs to the end; beside a node of control flow lives what
// one of its bodies needs. Nothing where that cannot be counted.
std::optional<Most> most_alive(const Plan& p, const std::vector<int64_t>& bytes,
                               const std::vector<Node>& nodes, const std::vector<int>& inputs,
                               const std::vector<int>& outputs) {
  const int end = static_cast<int>(nodes.size());
  struct Life {
    int first = -1, last = -1;
  };
  std::map<int, Life> lives;
  for (int n = 0; n < end; ++n) {
    for (const Operand& o : nodes[n].in)
      if (o.kind == Operand::value) lives[o.index].last = n;
    for (int v : nodes[n].out) lives[v] = {n, n};
  }
  for (int v : outputs) lives[v].last = end;
  for (int v : inputs) lives[v] = {-1, end};
  int64_t now = 0;
  for (int v : inputs)
    if (!add(now, bytes[v])) return std::nullopt;
  std::vector<std::vector<int>> dying(end + 1);
  Most most;
  for (int n = 0; n < end; ++n) {
    for (int v : nodes[n].out) {
      if (!add(now, bytes[v])) return std::nullopt;
      dying[lives[v].last].push_back(v);
    }
    Most within;
    for (int b : nodes[n].bodies) {
      const Body& body = p.bodies[b];
      std::optional<Most> other = most_alive(p, bytes, body.nodes, body.inputs, body.outputs);
      if (!other) return std::nullopt;
      if (other->bytes >= within.bytes) within = *std::move(other);
    }
    int64_t here = now;
    if (!add(here, within.bytes)) return std::nullopt;
    if (here > most.bytes || n == 0) most = {here, n, std::move(within.values)};
    for (int v : dying[n]) now -= bytes[v];
  }
  for (const auto& [v, life] : lives)
    if (life.first <= most.node && most.node <= life.last) most.values.push_back(v);
  return most;
}

}  // namespace

Result<Footprint> footprint(const Plan& p, const Sizes& given) {
  const auto too_many = [] { return bad_input("more bytes than can be counted: give smaller sizes"); };
  Sizes sizes;
  for (const std::string& name : p.symbols)
    if (is_name(name)) sizes[name] = kTypical;
  for (const auto& [name, size] : given) {
    if (!sizes.contains(name)) return bad_input("size of '" + name + "': the plan has no such dimension");
    if (size < 0) return bad_input("size of '" + name + "': " + std::to_string(size));
    sizes[name] = size;
  }
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    const auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional(it->second);
  };
  std::vector<Sum> symbols;
  for (const std::string& symbol : p.symbols) symbols.push_back(Polynomial::parse(symbol));
  std::vector<Polynomial> text;
  std::vector<int64_t> bytes;
  for (const Value& v : p.values) {
    const Sum sum = bytes_of(v, symbols);
    const std::optional<int64_t> value = sum ? sum->value(lookup) : std::nullopt;
    if (!value) return too_many();
    // A difference may be below 0 at these sizes, which no call has then.
    text.push_back(*sum), bytes.push_back(std::max<int64_t>(*value, 0));
  }

  Footprint f;
  for (const Weight& w : p.weights)
    if (!add(f.weights, static_cast<int64_t>(w.length))) return too_many();
  std::vector<int> inputs, outputs;
  for (const Port& i : p.inputs) inputs.push_back(i.value);
  for (const Port& o : p.outputs) outputs.push_back(o.value);
  const std::optional<Most> most = most_alive(p, bytes, p.nodes, inputs, outputs);
  if (!most) return too_many();
  f.live = most->bytes, f.node = most->node;
  for (int v : inputs)
    if (!add(f.buffers, bytes[v])) return too_many();
  for (const Parts& parts : parts_of(p))
    for (const Part& part : parts.parts) {  // each has its own
      std::vector<int64_t> slots(part.plan.slots, 0);
      for (size_t v = 0; v < part.values.size(); ++v)
        if (const int slot = part.plan.values[v].slot; slot >= 0)
          slots[slot] = std::max(slots[slot], bytes[part.values[v]]);
      for (int64_t slot : slots)
        if (!add(f.buffers, slot)) return too_many();
    }
  Sum total = 0;
  for (int v : most->values)
    if (total) total = sum(*total, text[v]);
  if (total) f.formula = total->text();
  return f;
}

}  // namespace invar::plan
