// An executable's words about itself: shapes of a step, uses of weights, names.
#include "run/prepare/executable.h"

#include <algorithm>

namespace invar::run {

uint64_t Executable::shape(int v, const StepShape& step, ops::View& view) const {
  const plan::Value& value = plan->values[v];
  view.dtype = value.dtype;
  view.rank = static_cast<int>(value.shape.size());
  view.pitch = values[v].pitch;
  // A dimension of 0 makes the tensor empty, but kernels multiply the other dimensions, so their
  // product must not overflow either.
  uint64_t bytes = size_of(value.dtype);
  bool empty = false;
  for (int i = 0; i < view.rank; ++i) {
    const plan::DimRef& d = value.shape[i];
    int64_t n = d.value;
    if (d.symbol >= 0) {
      const Symbol s = symbols[d.symbol];
      n = s == Symbol::batch    ? step.batch
          : s == Symbol::seq    ? step.rows
          : s == Symbol::source ? step.source
                                : step.past;
      if (s == Symbol::derived)
        n = plan->symbols[d.symbol]
                .evaluate([&](const std::string& name) {
                  return std::optional(name == "seq" ? step.rows : step.past);
                })
                .value_or(-1);
    }
    view.dim[i] = n;
    if (i == 1 && view.pitch) n = view.pitch;
    empty |= n == 0;
    if (n < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(n, 1)), &bytes) ||
        bytes >= kTooLarge)
      return kTooLarge;
  }
  return empty ? 0 : bytes;
}

bool Executable::shapes(const PreparedNode& node, const StepShape& step, NodeShapes& shapes) const {
  shapes.in.assign(node.node->in.size(), {}), shapes.out.assign(node.node->out.size(), {});
  bool fits_memory = true;
  for (size_t i = 0; i < shapes.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind == plan::Operand::value) {
      fits_memory &= shape(o.index, step, shapes.in[i]) < kTooLarge;
      continue;
    }
    const plan::Weight& w = plan->weights[o.index];
    shapes.in[i].dtype = w.dtype;
    shapes.in[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), shapes.in[i].dim);
  }
  for (size_t i = 0; i < shapes.out.size(); ++i)
    fits_memory &= shape(node.node->out[i], step, shapes.out[i]) < kTooLarge;
  return fits_memory;
}

std::vector<Weights::Use> Executable::weight_uses() const {
  std::vector<Weights::Use> uses;
  for (const PreparedNode& n : nodes)
    for (size_t i = 0; i < n.node->in.size(); ++i)
      if (n.node->in[i].kind == plan::Operand::weight)
        uses.push_back({n.node->in[i].index, n.kernel, static_cast<int>(i), &n.node->attrs});
  return uses;
}

Executable::Batch Executable::batch_of(int v) const {
  const std::vector<plan::DimRef>& shape = plan->values[v].shape;
  auto is_batch = [&](const plan::DimRef& d) { return d.symbol >= 0 && symbols[d.symbol] == Symbol::batch; };
  const auto count = std::count_if(shape.begin(), shape.end(), is_batch);
  return count == 0 ? Batch::absent : count == 1 && is_batch(shape[0]) ? Batch::leading : Batch::elsewhere;
}

int64_t Executable::constant_sequences() const {
  int64_t most = 1;
  for (const PreparedNode& n : nodes)
    for (int v : n.node->out)
      if (const auto& shape = plan->values[v].shape; n.contract->stateful && !shape.empty())
        most = std::max(most, shape[0].value);
  return most;
}

int64_t Executable::constant_positions() const {
  int64_t most = 1;
  for (const PreparedNode& n : nodes) {
    if (!n.contract->stateful) continue;
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::weight)
        for (const int64_t d : plan->weights[o.index].shape) most = std::max(most, d);
      else
        for (const plan::DimRef& d : plan->values[o.index].shape) most = std::max(most, d.value);
  }
  return most;
}

std::string Executable::name_of_node(size_t n) const {
  return plan::text_of(nodes[n].node->origin) + "operation " +
         std::to_string(n < node_numbers.size() ? static_cast<size_t>(node_numbers[n]) : n) +
         " of the plan, " + nodes[n].node->op;
}

std::vector<std::string> Executable::kernels() const {
  std::vector<std::string> names;
  for (const PreparedNode& n : nodes) {
    const std::string name = std::string(n.kernel.op()) + " " + std::string(n.kernel.isa());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Executable::libraries() const {
  std::vector<std::string> names;
  for (const PreparedNode& n : nodes) {
    if (!n.library) continue;
    const std::string name = std::string(n.library->name) + " " + n.library->version();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

size_t Executable::fused() const {
  size_t count = 0;
  for (const PreparedNode& n : nodes) count += n.fused_count + n.prologue.size() + n.chain.size();
  return count;
}

size_t Executable::channels_last() const {
  return static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [](const PreparedValue& v) { return v.pitch != 0; }));
}

size_t Executable::views() const {
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const PreparedNode& n) { return n.is_view; }));
}

}  // namespace invar::run
