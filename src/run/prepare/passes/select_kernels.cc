// Selects a kernel for every node: of an instruction set or of a GPU, or a vendor's where the
// plan's operation set allows it.
#include <map>

#include "run/prepare/kernel_selection.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {

// Whether an operand besides the first has rows of the step's tokens: then results depend on those
// of earlier steps.
static bool reads_earlier_rows(const plan::Plan& p, const plan::Node& n) {
  for (size_t i = 1; i < n.in.size(); ++i) {
    if (n.in[i].kind != plan::Operand::value) continue;
    for (const plan::DimRef& d : p.values[n.in[i].index].shape)
      if (d.symbol >= 0 && !p.symbols[d.symbol].all_symbols([](auto& name) { return name != "seq"; }))
        return true;
  }
  return false;
}
namespace {

// Vendors' libraries attached to the device's queue; null: cannot be.
using AttachedLibraries = std::map<const ops::Library*, std::shared_ptr<void>>;

// The vendor kernel that runs a node, attached to the device's queue; null: Invar's own kernel runs
// it.
const ops::VendorRow* vendor_kernel_of(const plan::Node& node, const plan::Plan& plan,
                                       const std::shared_ptr<Device>& device, AttachedLibraries& libraries) {
  std::vector<ops::OperandInfo> operands;
  for (const plan::Operand& o : node.in) {
    const bool constant = o.kind == plan::Operand::weight;
    operands.push_back({constant ? plan.weights[o.index].dtype : plan.values[o.index].dtype, constant});
  }
  const ops::VendorRow* const row =
      ops::find_vendor(node.op, operands, plan.operation_set, device != nullptr);
  if (!row || !device) return row;
  auto [known, is_new] = libraries.try_emplace(row->library);
  if (is_new) {
    device->make_current();
    auto attached = row->library->attach(device->stream());
    if (attached)
      known->second = {attached.get(), [attached, device](void*) mutable {
                         device->make_current();
                         attached.reset();
                       }};
  }
  return known->second ? row : nullptr;
}

// Of an operand that no node makes, another rank does.
void mark_joins(Executable& e) {
  std::vector<bool> made(e.values.size());
  for (const PreparedNode& n : e.nodes)
    for (int v : n.node->out) made[v] = true;
  for (size_t j = 0; j < e.joins.size(); ++j) {
    PreparedNode& node = e.nodes[e.joins[j].node];
    node.join = static_cast<int>(j);
    for (const plan::Operand& o : node.node->in) e.values[o.index].elsewhere = !made[o.index];
  }
}

}  // namespace

Status select_kernels(Executable& e, const Target& target) {
  e.has_memory = !e.plan->states.empty();
  AttachedLibraries libraries;
  std::map<std::string_view, const Attributes*> last_attrs;  // of the last node of an operation
  for (const plan::Node& n : e.plan->nodes) {
    INVAR_TRY(ops::KernelRef k, select_kernel(n.op, target.isa, target.device != nullptr));
    const ops::VendorRow* const row =
        target.isa.empty() ? vendor_kernel_of(n, *e.plan, target.device, libraries) : nullptr;
    if (row) k = row->kernel;
    const ops::OpContract* const contract = ops::contract_of(n.op);
    if (n.state >= 0 && !contract->stateful)
      return bad_input("operation " + n.op + " of the plan cannot have a state");
    if (n.state < 0 && contract->stateful && reads_earlier_rows(*e.plan, n)) e.has_memory = false;
    const auto [like, is_new] = last_attrs.emplace(n.op, &n.attrs);
    if (!is_new && *like->second != n.attrs) like->second = &n.attrs;
    e.nodes.push_back({&n, k, contract, row ? row->library : nullptr, like->second});
  }
  mark_joins(e);
  for (auto& [library, attached] : libraries)
    if (attached) e.attached.push_back(std::move(attached));
  return {};
}

}  // namespace invar::run
