// Program::make: from a plan to a prepared program, pass by pass; and what a program says about
// itself.
#include "run/prepare/program.h"

#include <algorithm>

#include "run/prepare/kernel_selection.h"

namespace invar::run {

Result<Program> Program::make(const plan::Plan& plan, const std::string& isa, std::shared_ptr<Device> device,
                              std::span<const int> node_numbers) {
  if (device) {
    if (!isa.empty())
      return bad_input("an instruction set cannot be forced on a GPU; leave --isa out, or --device");
  } else {
    INVAR_CHECK_OK(check_isa(isa));
  }
  Program r;
  r.plan_ = &plan;
  r.node_numbers_.assign(node_numbers.begin(), node_numbers.end());
  r.device_ = std::move(device);
  r.values_.resize(plan.values.size());
  INVAR_CHECK_OK(r.bind_symbols());
  INVAR_CHECK_OK(r.select_kernels(isa));
  r.find_readers();
  r.mark_feeds_state();
  r.buffer_offset_.resize(static_cast<size_t>(r.assign_buffers()) + 1);
  r.mark_concurrent();
  return r;
}

// Names the sizes that the plan's symbols take from a step, and refuses what no step can hold.
Status Program::bind_symbols() {
  for (const DimExpr& symbol : plan_->symbols) {
    const std::string s = symbol.text();
    if (s == "batch") {
      symbols_.push_back(Symbol::batch);
    } else if (s == "seq") {
      symbols_.push_back(Symbol::seq);
    } else if (s == "past") {
      symbols_.push_back(Symbol::past);
    } else {
      return not_covered("the plan's symbol '" + s +
                         "' cannot be bound; a session binds batch, seq and past");
    }
  }
  for (const plan::Value& v : plan_->values)
    if (v.shape.size() > ops::kMaxRank)
      return not_covered("the plan has a tensor of rank " + std::to_string(v.shape.size()));
  for (const plan::Weight& w : plan_->weights)
    if (w.shape.size() > ops::kMaxRank) return not_covered("weight " + w.name + " has too many dimensions");
  for (const plan::Value& v : plan_->values)
    for (const plan::DimRef& d : v.shape)
      shaped_by_past_ |= d.symbol >= 0 && symbols_[d.symbol] == Symbol::past;
  return {};
}

Status Program::select_kernels(const std::string& isa) {
  has_memory_ = !plan_->states.empty();
  std::map<std::string_view, const Attributes*> last_attrs;  // of the last node of an operation
  for (const plan::Node& n : plan_->nodes) {
    INVAR_TRY(ops::KernelRef k, select_kernel(n.op, isa, device_ != nullptr));
    const ops::VendorRow* const row = isa.empty() ? vendor_kernel_of(n) : nullptr;
    if (row) k = row->kernel;
    const ops::OpContract* const contract = ops::contract_of(n.op);
    if (n.state >= 0 && !contract->stateful)
      return bad_input("operation " + n.op + " of the plan cannot have a state");
    if (n.state < 0 && contract->stateful) has_memory_ = false;
    PreparedNode& node = nodes_.emplace_back();
    node.node = &n, node.kernel = k, node.contract = contract;
    node.library = row ? row->library : nullptr;
    uses_libraries_ |= row != nullptr;
    node.attrs = &n.attrs;
    const auto [like, is_new] = last_attrs.emplace(n.op, node.attrs);
    if (!is_new && *like->second == n.attrs) node.attrs = like->second;
    like->second = node.attrs;
    node.in.resize(n.in.size()), node.out.resize(n.out.size()), node.units.resize(k.cpu ? k.cpu->phases : 0);
  }
  return {};
}

// The vendor kernel that runs a node, attached to the device's queue; null: Invar's own kernel runs
// it.
const ops::VendorRow* Program::vendor_kernel_of(const plan::Node& node) {
  std::vector<ops::OperandInfo> operands;
  for (const plan::Operand& o : node.in) {
    const bool constant = o.kind == plan::Operand::weight;
    operands.push_back({constant ? plan_->weights[o.index].dtype : plan_->values[o.index].dtype, constant});
  }
  const ops::VendorRow* const row =
      ops::find_vendor(node.op, operands, plan_->operation_set, device_ != nullptr);
  if (!row || !device_) return row;
  auto [known, is_new] = attached_.try_emplace(row->library);
  if (is_new) {
    device_->make_current();
    auto attached = row->library->attach(device_->stream());
    if (attached)
      known->second = {attached.get(), [attached, device = device_](void*) mutable {
                         device->make_current();
                         attached.reset();
                       }};
  }
  return known->second ? row : nullptr;
}

// feed() redirects the operands that read an input.
void Program::find_readers() {
  for (const plan::Port& p : plan_->inputs) readers_[p.value];
  for (PreparedNode& n : nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (const auto input = readers_.find(n.node->in[i].index);
          n.node->in[i].kind == plan::Operand::value && input != readers_.end())
        input->second.push_back(&n.in[i]);
}

// Liveness backwards from the stateful nodes. The other nodes, above all the projection to the
// vocabulary, are not needed for rows of a prompt whose logits nobody asks for.
void Program::mark_feeds_state() {
  for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
    n->feeds_state = n->node->state >= 0;
    for (int v : n->node->out) n->feeds_state |= values_[v].feeds_state;
    if (!n->feeds_state) continue;
    for (int v : n->node->out) values_[v].feeds_state = true;  // it runs, so all its results need memory
    for (const plan::Operand& o : n->node->in)
      if (o.kind == plan::Operand::value) values_[o.index].feeds_state = true;
  }
  for (const plan::Port& i : plan_->inputs) values_[i.value].feeds_state = true;
}

// Takes the slots of the plan, or on the host those that fusion plans anew. Values without a slot
// get buffers of their own. Returns the number of buffers.
int Program::assign_buffers() {
  for (size_t v = 0; v < values_.size(); ++v) values_[v].buffer = plan_->values[v].slot;
  int count = plan_->slots;
  if (!device_) {
    count = fuse_epilogues();
    assign_layouts();
  }
  for (PreparedValue& v : values_)
    if (v.buffer < 0) v.buffer = count++;
  return count;
}

std::vector<Weights::Use> Program::weight_uses() const {
  std::vector<Weights::Use> uses;
  for (const PreparedNode& n : nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.node->in[i].kind == plan::Operand::weight)
        uses.push_back({n.node->in[i].index, n.kernel, static_cast<int>(i), &n.node->attrs});
  return uses;
}

void Program::attach(const Weights& weights) {
  size_t next = 0;
  for (PreparedNode& n : nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.node->in[i].kind == plan::Operand::weight) n.in[i] = weights.views()[next++];
}

Program::Batch Program::batch_of(int v) const {
  const std::vector<plan::DimRef>& shape = plan_->values[v].shape;
  auto is_batch = [&](const plan::DimRef& d) { return d.symbol >= 0 && symbols_[d.symbol] == Symbol::batch; };
  const auto count = std::count_if(shape.begin(), shape.end(), is_batch);
  return count == 0 ? Batch::absent : count == 1 && is_batch(shape[0]) ? Batch::leading : Batch::elsewhere;
}

int64_t Program::constant_sequences() const {
  int64_t most = 1;
  for (const PreparedNode& n : nodes_)
    for (int v : n.node->out)
      if (const auto& shape = plan_->values[v].shape; n.contract->stateful && !shape.empty())
        most = std::max(most, shape[0].value);
  return most;
}

int64_t Program::constant_positions() const {
  int64_t most = 1;
  for (const PreparedNode& n : nodes_) {
    if (!n.contract->stateful) continue;
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::weight)
        for (const int64_t d : plan_->weights[o.index].shape) most = std::max(most, d);
      else
        for (const plan::DimRef& d : plan_->values[o.index].shape) most = std::max(most, d.value);
  }
  return most;
}

std::string Program::name_of_node(size_t n) const {
  return plan::text_of(nodes_[n].node->origin) + "operation " +
         std::to_string(n < node_numbers_.size() ? static_cast<size_t>(node_numbers_[n]) : n) +
         " of the plan, " + nodes_[n].node->op;
}

std::vector<std::string> Program::kernels() const {
  std::vector<std::string> names;
  for (const PreparedNode& n : nodes_) {
    const std::string name = std::string(n.kernel.op()) + " " + std::string(n.kernel.isa());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Program::libraries() const {
  std::vector<std::string> names;
  for (const PreparedNode& n : nodes_) {
    if (!n.library) continue;
    const std::string name = std::string(n.library->name) + " " + n.library->version();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace invar::run
