#include "run/prepare/program.h"

#include <algorithm>
#include <cstring>

#include "num/env.h"
#include "run/prepare/kernel_selection.h"

namespace invar::run {
Result<Program> Program::make(const plan::Plan& plan, const std::string& isa, std::shared_ptr<Device> device,
                              std::span<const int> numbers) {
  if (device) {
    if (!isa.empty())
      return bad_input("an instruction set cannot be forced on a GPU; leave --isa out, or --device");
  } else {
    INVAR_CHECK_OK(check_isa(isa));
  }
  Program r;
  r.plan_ = &plan;
  r.numbers_.assign(numbers.begin(), numbers.end());
  r.device_ = std::move(device);
  for (const std::string& s : plan.symbols) {
    if (s == "batch") {
      r.symbols_.push_back(Symbol::batch);
    } else if (s == "seq") {
      r.symbols_.push_back(Symbol::seq);
    } else if (s == "past") {
      r.symbols_.push_back(Symbol::past);
    } else {
      return not_covered("the plan's symbol '" + s +
                         "' cannot be bound; a session binds batch, seq and past");
    }
  }
  for (const plan::Value& v : plan.values)
    if (v.shape.size() > ops::kMaxRank)
      return not_covered("the plan has a tensor of rank " + std::to_string(v.shape.size()));
  for (const plan::Weight& w : plan.weights)
    if (w.shape.size() > ops::kMaxRank) return not_covered("weight " + w.name + " has too many dimensions");
  r.has_memory_ = !plan.states.empty();
  std::map<const ops::Kernel*, const Attrs*> attrs;  // of the last node
  for (const plan::Node& n : plan.nodes) {
    INVAR_TRY(const ops::Kernel* k, choose(n.op, r.device_ ? std::string(ops::kCuda) : isa));
    const ops::LibraryRow* const row = isa.empty() ? r.library_row(n) : nullptr;
    if (row) k = row->kernel;
    if (n.state >= 0 && !k->state_bytes)
      return bad_input("operation " + n.op + " of the plan cannot have a state");
    if (n.state < 0 && k->state_bytes) r.has_memory_ = false;
    Node& node = r.nodes_.emplace_back();
    node.node = &n, node.kernel = k, node.reference = ops::find(n.op, "reference");
    node.library = row ? row->library : nullptr;
    r.libraries_ |= row != nullptr;
    node.attrs = &n.attrs;
    const auto [like, is_new] = attrs.emplace(k, node.attrs);
    if (!is_new && *like->second == n.attrs) node.attrs = like->second;
    like->second = node.attrs;
    node.in.resize(n.in.size()), node.out.resize(n.out.size()), node.units.resize(k->phases);
  }
  for (const plan::Value& v : plan.values)
    for (const plan::Dim& d : v.shape)
      r.shaped_by_past_ |= d.symbol >= 0 && r.symbols_[d.symbol] == Symbol::past;
  for (const plan::Port& p : plan.inputs) r.readers_[p.value];
  for (Node& n : r.nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (const auto input = r.readers_.find(n.node->in[i].index);
          n.node->in[i].kind == plan::Operand::value && input != r.readers_.end())
        input->second.push_back(&n.in[i]);
  r.mark_core();
  r.shift_.resize(plan.values.size());
  for (const plan::Value& v : plan.values) r.buffer_.push_back(v.slot);
  int next = plan.slots;
  r.pitch_.resize(plan.values.size());
  if (!r.device_) next = r.fuse(), r.lay_out();
  for (int& b : r.buffer_)
    if (b < 0) b = next++;
  r.offset_.resize(next + 1);
  r.mark_joins();
  r.values_.resize(plan.values.size());
  return r;
}

// The library's row for a node, ready for calls; null: the reproducible one runs.
const ops::LibraryRow* Program::library_row(const plan::Node& node) {
  std::vector<ops::Given> operands;
  for (const plan::Operand& o : node.in) {
    const bool constant = o.kind == plan::Operand::weight;
    operands.push_back({constant ? plan_->weights[o.index].dtype : plan_->values[o.index].dtype, constant});
  }
  const ops::LibraryRow* const row =
      ops::find_library(node.op, operands, plan_->operation_set, device_ != nullptr);
  if (!row || !device_) return row;
  auto [known, is_new] = attached_.try_emplace(row->library);
  if (is_new) {
    device_->enter();
    auto attached = row->library->attach(device_->stream());
    if (attached)
      known->second = {attached.get(), [attached, device = device_](void*) mutable {
                         device->enter();
                         attached.reset();
                       }};
  }
  return known->second ? row : nullptr;
}

// Backwards from the nodes with a state: the rest, above all the projection to the vocabulary, is not needed
// for the rows of a prompt whose logits nobody asked for.
void Program::mark_core() {
  core_value_.assign(plan_->values.size(), false);
  for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
    n->core = n->node->state >= 0;
    for (int v : n->node->out) n->core |= core_value_[v];
    if (!n->core) continue;
    for (int v : n->node->out) core_value_[v] = true;  // it runs, so all of its results need room
    for (const plan::Operand& o : n->node->in)
      if (o.kind == plan::Operand::value) core_value_[o.index] = true;
  }
  for (const plan::Port& i : plan_->inputs) core_value_[i.value] = true;
}

std::vector<Weights::Use> Program::weight_uses() const {
  std::vector<Weights::Use> uses;
  for (const Node& n : nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.node->in[i].kind == plan::Operand::weight)
        uses.push_back({n.node->in[i].index, n.kernel, static_cast<int>(i), &n.node->attrs});
  return uses;
}

void Program::attach(const Weights& weights) {
  size_t next = 0;
  for (Node& n : nodes_)
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.node->in[i].kind == plan::Operand::weight) n.in[i] = weights.views()[next++];
}

int64_t Program::constant_sequences() const {
  int64_t most = 1;
  for (const Node& n : nodes_)
    for (int v : n.node->out)
      if (const auto& shape = plan_->values[v].shape; n.kernel->state_bytes && !shape.empty())
        most = std::max(most, shape[0].value);
  return most;
}

int64_t Program::constant_positions() const {
  int64_t most = 1;
  for (const Node& n : nodes_) {
    if (!n.kernel->state_bytes) continue;
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::weight)
        for (const int64_t d : plan_->weights[o.index].shape) most = std::max(most, d);
      else
        for (const plan::Dim& d : plan_->values[o.index].shape) most = std::max(most, d.value);
  }
  return most;
}

uint64_t Program::shape(int v, const Extent& extent, ops::View& view) const {
  const plan::Value& value = plan_->values[v];
  view.dtype = value.dtype;
  view.rank = static_cast<int>(value.shape.size());
  view.pitch = pitch_[v];
  // A dimension of 0 makes the tensor empty, but products of the others are formed, too: they must fit as well.
  uint64_t bytes = size_of(value.dtype);
  bool empty = false;
  for (int i = 0; i < view.rank; ++i) {
    const plan::Dim& d = value.shape[i];
    int64_t n = d.value;
    if (d.symbol >= 0) {
      const Symbol s = symbols_[d.symbol];
      n = s == Symbol::batch ? extent.batch : s == Symbol::seq ? extent.rows : extent.past;
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

Status Program::reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t slots, bool ports) {
  std::vector<uint64_t> size(offset_.size());
  for (size_t v = 0; v < values_.size(); ++v) {
    ops::View view;
    for (const Extent& e :
         {Extent{1, core_value_[v] ? rows : tail_rows, capacity}, Extent{slots, 1, capacity}})
      size[buffer_[v]] = std::max(size[buffer_[v]], shape(static_cast<int>(v), e, view));
  }
  uint64_t total = 0;
  std::vector<uint64_t> offset(size.size());
  for (size_t b = 0; b < size.size(); ++b) {
    offset[b] = total;
    if (size[b] >= kTooLarge || (total += Block::round_up(size[b])) >= kTooLarge)
      return bad_input("the plan's tensors are too large for any memory");
  }
  if (device_) {  // nothing reads what goes
    INVAR_CHECK_OK(device_->wait());
  }
  if (!now_.size()) {
    const uint64_t bytes = sizeof(Now) + static_cast<uint64_t>(slots) * sizeof(ops::Sequence);
    INVAR_TRY(now_,
              device_ ? Block::make_pinned(bytes, "positions", device_) : Block::make(bytes, "positions"));
    INVAR_TRY(now_on_device_, Block::make(device_ ? bytes : 0, "positions", device_));
  }
  graphs_.clear();
  INVAR_TRY(arena_, Block::make(total, "activations", device_));  // on an error the old one stays
  bound_ = {};
  offset_ = std::move(offset);
  capacity_ = capacity;
  scratch_.resize(workers_);
  std::vector<ops::Sequence> all;
  for (int64_t i = 0; i < slots; ++i) all.push_back({i, 0});
  INVAR_CHECK_OK(bind(1, {all.data(), 1}));
  if (!states_.size()) {
    INVAR_CHECK_OK(reserve_states(slots));
  }
  // The largest steps, so that scratch memory is there before the first one.
  for (auto [count, of_each] : {std::pair{slots, int64_t{1}}, {int64_t{1}, tail_rows}, {int64_t{1}, rows}}) {
    for (ops::Sequence& s : all) s.past = capacity - of_each;
    INVAR_CHECK_OK(bind(of_each, {all.data(), static_cast<size_t>(count)}));
  }
  return device_ && ports ? reserve_ports(size) : Status();
}

Status Program::reserve_states(int64_t slots) {
  uint64_t total = 0;
  for (Node& n : nodes_) {
    if (!n.kernel->state_bytes) continue;
    n.slot_bytes = Block::round_up(n.kernel->state_bytes(n.call, capacity_)), n.slots_at = total;
    uint64_t bytes;
    if (__builtin_mul_overflow(n.slot_bytes, static_cast<uint64_t>(slots), &bytes) ||
        (total += bytes) >= kTooLarge)
      return bad_input("the memory of " + std::to_string(slots) + " sequences of " +
                       std::to_string(capacity_) + " positions is too large for any machine");
  }
  const std::string purpose =
      "memory between steps (" + std::to_string(slots) + " x " + std::to_string(capacity_) + " positions)";
  INVAR_TRY(states_, Block::make(total, purpose.c_str(), device_));
  return {};
}

Status Program::bind(int64_t rows, std::span<const ops::Sequence> sequences) {
  Now& now = *reinterpret_cast<Now*>(now_.data());
  std::copy(sequences.begin(), sequences.end(), sequences_in(now_));
  now.past = 0;
  for (const ops::Sequence& s : sequences) now.past = std::max(now.past, s.past);
  const Extent extent{static_cast<int64_t>(sequences.size()), rows,
                      device_ ? bound_of(rows, now.past) : now.past};
  // Steps of as many rows as the last differ in what is remembered alone.
  const bool anew = extent.batch != bound_.batch || rows != bound_.rows || shaped_by_past_;
  bound_ = {};
  for (size_t v = 0; anew && v < values_.size(); ++v) {
    shape(static_cast<int>(v), extent, values_[v]);
    values_[v].data = arena_.data() + offset_[buffer_[v]] + shift_[v];
  }
  for (Node& n : nodes_)
    if (anew || n.kernel->state_bytes) {
      INVAR_CHECK_OK(bind(n, extent));
    }
  if (device_ && anew)
    for (size_t n = 0, end; n < nodes_.size(); n = end) {
      end = joined_end(n);
      if (end > n + 1 && nodes_[n].kernel->shared_bytes_all) {
        INVAR_CHECK_OK(reserve_shared(nodes_[n].kernel->shared_bytes_all(calls(n, end))));
      }
    }
  if (!device_) mark_turns();
  bound_ = extent;
  return {};
}

Status Program::bind(Node& node, const Extent& extent) {
  node.work = 0;
  auto count = [&node](const ops::View& v) {
    node.work += v.elements() * static_cast<int64_t>(size_of(v.dtype));
  };
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind == plan::Operand::value) node.in[i] = values_[o.index];
    count(node.in[i]);
  }
  for (size_t i = 0; i < node.out.size(); ++i) count(node.out[i] = values_[node.node->out[i]]);
  node.call = {node.in, node.out, node.attrs};
  node.call.shared = shared_.data();
  if (node.followers) {
    node.epilogue = epilogue_of(node);
    node.call.epilogue = &node.epilogue;
  }
  if (device_) {
    Now* const now = reinterpret_cast<Now*>(now_on_device_.data());
    node.call.past_now = &now->past, node.call.fault = &now->fault;
  }
  const ops::Kernel& k = *node.kernel;
  if (k.state_bytes) {
    node.call.state = states_.data() + node.slots_at, node.call.slot_bytes = node.slot_bytes;
    node.call.sequences = sequences_in(device_ ? now_on_device_ : now_);
    node.call.past = extent.past, node.call.capacity = capacity_;
    node.work +=
        extent.batch * static_cast<int64_t>(node.slot_bytes) / capacity_ * (extent.past + extent.rows);
  }
  for (int phase = 0; k.units && phase < k.phases; ++phase)
    node.units[phase] = node.lies ? 0 : std::max<int64_t>(k.units(node.call, phase), 0);
  if (k.scratch_bytes) {
    const size_t bytes = k.scratch_bytes(node.call);
    for (Block& b : scratch_)
      if (b.size() < bytes) {
        INVAR_TRY(b, Block::make(bytes, "scratch"));
      }
  }
  node.shared = k.shared_bytes ? k.shared_bytes(node.call) : 0;
  return reserve_shared(node.shared);
}

Status Program::reserve_shared(size_t bytes) {
  if (shared_.size() >= bytes) return {};
  if (device_) {
    INVAR_CHECK_OK(device_->wait());
  }
  graphs_.clear();  // they know the old one
  INVAR_TRY(shared_, Block::make(bytes, "memory between phases", device_));
  for (Node& n : nodes_) n.call.shared = shared_.data();  // one node runs at a time, or some that share it
  return {};
}

Error Program::names_no_place(const Node& node, const ops::Stray& stray) const {
  return bad_input(name_of_node(static_cast<size_t>(&node - nodes_.data())) + ": " +
                   text_of(stray, node.in[static_cast<size_t>(stray.operand)]));
}
std::string Program::name_of_node(size_t n) const {
  return plan::text_of(nodes_[n].node->origin) + "operation " +
         std::to_string(n < numbers_.size() ? static_cast<size_t>(numbers_[n]) : n) + " of the plan, " +
         nodes_[n].node->op;
}

std::vector<const ops::Call*> Program::calls(size_t begin, size_t end) const {
  std::vector<const ops::Call*> calls;
  for (; begin < end; ++begin) calls.push_back(&nodes_[begin].call);
  return calls;
}

Status Program::run(Pool& pool, bool tail, const std::function<void()>& beside) {
  if (device_) return run_on_device(tail, beside);
  for (const Turn& turn : turns_) {
    if (!tail && !nodes_[turn.begin].core) continue;
    for (size_t n = turn.begin; turn.strays && n < turn.end; ++n)
      if (ops::Stray stray; nodes_[n].reference->stray && nodes_[n].reference->stray(nodes_[n].call, stray))
        return names_no_place(nodes_[n], stray);
    run(pool, turn);
  }
  return check_libraries();
}

Status Program::check_libraries() const {
  if (!libraries_) return {};
  for (const Node& n : nodes_)
    if (n.library && n.library->failed())
      return Error{Code::internal, std::string(n.library->name) + " " + n.library->version() +
                                       " refused a call, perhaps for want of memory; --operation-set "
                                       "reproducible needs no library"};
  return {};
}

// Nodes, all but followers of one kernel, phase by phase; their units are one range.
void Program::run(Pool& pool, const Turn& turn) {
  const auto [begin, end, workers, strays] = turn;
  num::mend_arithmetic_env();
  const ops::Kernel& kernel = *nodes_[begin].kernel;
  if (workers == 1) {
    for (int phase = 0; phase < kernel.phases; ++phase)
      for (size_t n = begin; n < end; n = behind(n))
        if (const Node& node = nodes_[n]; node.units[phase])
          kernel.run(node.call, phase, 0, node.units[phase], scratch_[0].data());
    return;
  }
  for (int phase = 0; phase < kernel.phases; ++phase) {
    int64_t units = 0;
    for (size_t n = begin; n < end; n = behind(n)) units += nodes_[n].units[phase];
    if (units == 0) continue;
    struct {
      const Program& program;
      const ops::Kernel& kernel;
      size_t begin, end;
      int phase;
    } job{*this, kernel, begin, end, phase};
    auto work = [&job](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept, in functions that a library can replace
      int64_t first = 0;           // unit of the node
      for (size_t n = job.begin; n < job.end && first < to; n = job.program.behind(n)) {
        const Node& node = job.program.nodes_[n];
        const int64_t here = node.units[job.phase];
        const int64_t a = std::max(from - first, int64_t{0}), b = std::min(to - first, here);
        if (a < b) job.kernel.run(node.call, job.phase, a, b, job.program.scratch_[worker].data());
        first += here;
      }
    };
    if (units == 1)
      work(0, 0, units);
    else
      pool.run(units, work, workers);
  }
}

Status Program::feed(int v, std::span<const std::byte> bytes) {
  if (device_) there_.erase(v);
  if (bytes.empty()) return {};
  const bool in_place =
      !device_ && reinterpret_cast<uintptr_t>(bytes.data()) % size_of(values_[v].dtype) == 0;
  if (device_ && !inputs_[v].size()) {
    INVAR_TRY(inputs_[v], Block::make_pinned(bytes.size(), "an input", device_));
  }
  std::byte* const own = device_ ? inputs_.at(v).data() : arena_.data() + offset_[buffer_[v]];
  if (!in_place) std::memcpy(own, bytes.data(), bytes.size());
  if (device_) return {};
  void* const at =
      in_place ? const_cast<std::byte*>(bytes.data()) : own;  // kernels do not write their inputs
  if (values_[v].data == at) return {};
  values_[v].data = at;
  for (ops::View* operand : readers_.at(v)) operand->data = at;
  return {};
}

ops::View Program::port(int v) const {
  ops::View view = values_[v];
  if (device_) view.data = inputs_.contains(v) ? inputs_.at(v).data() : result_on_host(v);
  return view;
}

std::vector<std::string> Program::kernels() const {
  std::vector<std::string> names;
  for (const Node& n : nodes_) {
    const std::string name = std::string(n.kernel->op) + " " + std::string(n.kernel->isa);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Program::libraries() const {
  std::vector<std::string> names;
  for (const Node& n : nodes_) {
    if (!n.library) continue;
    const std::string name = std::string(n.library->name) + " " + n.library->version();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

size_t Program::bytes() const {
  size_t bytes = arena_.size() + states_.size() + shared_.size();
  for (const Block& b : scratch_) bytes += b.size();
  for (const auto* ports : {&inputs_, &outputs_})
    for (const auto& [v, b] : *ports) bytes += b.size();
  return bytes;
}

}  // namespace invar::run
