// An executable as text, see prepare.h.
#include <algorithm>

#include "base/text/display.h"
#include "run/prepare/prepare.h"

namespace invar::run {
namespace {

int number(const std::vector<int>& numbers, size_t i) {
  return i < numbers.size() ? numbers[i] : static_cast<int>(i);
}

std::string value_text(const Executable& e, int v) {
  return "v" + std::to_string(number(e.value_numbers, static_cast<size_t>(v)));
}

std::string typed_text(const Executable& e, int v) {
  const plan::Value& value = e.plan->values[v];
  std::string s = value_text(e, v) + ": " + std::string(name_of(value.dtype)) + " [";
  for (size_t i = 0; i < value.shape.size(); ++i) {
    const plan::DimRef& d = value.shape[i];
    s += (i ? ", " : "") + (d.symbol < 0 ? std::to_string(d.value) : e.plan->symbols[d.symbol].text());
  }
  return s + "]";
}

std::string operand_text(const Executable& e, const plan::Operand& o) {
  return o.kind == plan::Operand::value ? value_text(e, o.index)
                                        : "\"" + printable(e.plan->weights[o.index].name) + "\"";
}

template <class T, class F>
std::string list(const std::vector<T>& items, const F& text) {
  std::string s;
  for (const T& item : items) s += (s.empty() ? "" : ", ") + text(item);
  return s;
}

// The first node of the run of concurrent nodes that node `n` is in.
size_t concurrent_head(const Executable& e, size_t n) {
  while (e.nodes[n].concurrent) --n;
  return n;
}

// The node in whose kernels `n` runs as a part of its prologue.
size_t prologue_head(const Executable& e, size_t n) {
  while (e.nodes[n].in_prologue) ++n;
  return n;
}

// The last node of the chain that `n` is in.
size_t chain_end(const Executable& e, size_t n) {
  const size_t own = n;
  while (!std::ranges::binary_search(e.nodes[n].chain, own)) ++n;
  return n;
}

// The passes' decisions about a node.
std::vector<std::string> decisions(const Executable& e, size_t n, size_t fused_head) {
  std::vector<std::string> all;
  const PreparedNode& node = e.nodes[n];
  auto operation = [&](size_t m) { return "operation " + std::to_string(number(e.node_numbers, m)); };
  if (node.feeds_state) all.push_back("feeds a state");
  if (node.is_view) {
    const PreparedValue& v = e.values[node.node->out[0]];
    all.push_back("view of " + value_text(e, v.view_of) + " at byte " + std::to_string(v.offset));
  }
  if (node.is_constant) all.push_back("constant");
  for (const int v : node.node->out)
    if (const int base = e.values[v].may_view; base >= 0)
      all.push_back("view of " + value_text(e, base) + " where its bytes lie together");
  if (fused_head != n) all.push_back("fused into " + operation(fused_head));
  if (node.in_chain) all.push_back("in one kernel with " + operation(chain_end(e, n)));
  if (node.in_prologue) all.push_back("rounded in " + operation(prologue_head(e, n)));
  for (int v : node.node->out) {
    if (e.values[v].buffer >= 0) all.push_back("buffer " + std::to_string(e.values[v].buffer));
    if (e.values[v].pitch) all.push_back("channels last, pitch " + std::to_string(e.values[v].pitch));
  }
  if (node.concurrent) all.push_back("concurrent with " + operation(concurrent_head(e, n)));
  return all;
}

std::string line_of(const Executable& e, size_t n, size_t fused_head) {
  const PreparedNode& node = e.nodes[n];
  const std::string s = std::to_string(number(e.node_numbers, n)) + "  " +
                        list(node.node->out, [&](int v) { return typed_text(e, v); }) + " = " +
                        node.node->op + " " + std::string(node.kernel.isa()) + " (" +
                        list(node.node->in, [&](const plan::Operand& o) { return operand_text(e, o); }) + ")";
  const std::string decided = list(decisions(e, n, fused_head), [](const std::string& one) { return one; });
  return decided.empty() ? s : s + ": " + decided;
}

}  // namespace

std::vector<std::string> print(const Executable& e) {
  std::vector<std::string> lines;
  for (size_t head = 0; head < e.nodes.size(); head = e.group_end(head))
    for (size_t n = head; n < e.group_end(head); ++n) lines.push_back(line_of(e, n, head));
  return lines;
}

PassObserver explain(std::function<void(std::string_view)> write) {
  if (!write) return {};
  return [write = std::move(write), before = std::vector<std::string>()](const Pass& pass,
                                                                         const Executable& e) mutable {
    std::vector<std::string> lines = print(e);
    std::string changed;
    for (size_t n = 0; n < lines.size(); ++n)
      if (n >= before.size() || lines[n] != before[n]) changed += "  " + lines[n] + "\n";
    before = std::move(lines);
    write("pass " + std::string(pass.name) + (changed.empty() ? ": no change\n" : "\n" + changed));
  };
}

}  // namespace invar::run
