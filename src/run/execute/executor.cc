// The memory of an executor: reserve() allocates it once for the largest steps, bind() points the
// nodes of one step into it.
#include "run/execute/executor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "run/execute/cpu_executor.h"
#include "run/execute/cuda_executor.h"
#include "run/execute/out_of_bounds.h"
#include "run/prepare/fixed_states.h"

namespace invar::run {
namespace {

// True as long as it lives.
class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ~ScopedFlag() { flag_ = false; }
  ScopedFlag(const ScopedFlag&) = delete;

 private:
  bool& flag_;
};

// A result that no memory holds; v -1: all together.
Error too_large(const Executable& e, int v) {
  for (size_t n = 0; n < e.nodes.size(); ++n)
    for (const int out : e.nodes[n].node->out)
      if (out == v) return bad_input(e.name_of_node(n) + ": its result is too large for any memory");
  return bad_input("the plan's tensors are too large for any memory");
}

}  // namespace

std::unique_ptr<Executor> Executor::make(std::shared_ptr<const Executable> executable, Pool& pool,
                                         const std::shared_ptr<Device>& device) {
  if (device) return std::make_unique<CudaExecutor>(std::move(executable), device);
  return std::make_unique<CpuExecutor>(std::move(executable), pool);
}

Executor::Executor(std::shared_ptr<const Executable> executable, std::shared_ptr<Device> device)
    : executable_(std::move(executable)), device_(std::move(device)) {
  nodes_.resize(executable_->nodes.size()), values_.resize(executable_->values.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const PreparedNode& node = executable_->nodes[n];
    nodes_[n].in.resize(node.node->in.size()), nodes_[n].out.resize(node.node->out.size());
    nodes_[n].units.resize(node.kernel.cpu ? node.kernel.cpu->phases : 0);
    uses_libraries_ |= node.library != nullptr;
  }
}

Status Executor::attach(const Weights& weights) {
  INVAR_CHECK_OK(release_memory());  // recorded steps read the weights before
  has_constants_ = false;
  size_t next = 0;
  for (size_t n = 0; n < nodes_.size(); ++n)
    for (size_t i = 0; i < nodes_[n].in.size(); ++i)
      if (executable_->nodes[n].node->in[i].kind == plan::Operand::weight)
        nodes_[n].in[i] = weights.views()[next++];
  return {};
}

Status Executor::reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t max_sequences,
                         bool host_ports) {
  const Executable& e = *executable_;
  std::vector<uint64_t> size(e.buffers);
  const StepShape tail{1, tail_rows, capacity}, batch{max_sequences, 1, capacity};
  for (size_t v = 0; v < values_.size(); ++v) {
    if (e.values[v].elsewhere) continue;
    ops::View view;
    const StepShape one{1, e.values[v].feeds_state ? rows : tail_rows, capacity};
    uint64_t& bytes = size[e.values[v].buffer];
    for (const StepShape& step : {one, batch})
      bytes = std::max(bytes, e.shape(static_cast<int>(v), step, view));
    if (bytes >= Executable::kTooLarge) return too_large(e, static_cast<int>(v));
  }
  of_constants_.assign(size.size(), false);
  for (const PreparedValue& v : e.values)
    if (v.is_constant) of_constants_[static_cast<size_t>(v.buffer)] = true;
  uint64_t total = 0, of_constants = 0;
  std::vector<uint64_t> offset(size.size());
  for (size_t b = 0; b < size.size(); ++b) {
    uint64_t& end = of_constants_[b] ? of_constants : total;
    offset[b] = end;
    if (size[b] >= Executable::kTooLarge || (end += Allocation::round_up(size[b])) >= Executable::kTooLarge)
      return too_large(e, -1);
  }
  INVAR_CHECK_OK(release_memory());
  if (constants_.size() < of_constants) {
    has_constants_ = false;
    INVAR_TRY(constants_, Allocation::make(of_constants, "results of weights", device_));
  }
  if (!step_header_.size()) {
    INVAR_CHECK_OK(
        reserve_header(sizeof(StepHeader) + static_cast<uint64_t>(max_sequences) * sizeof(ops::Sequence)));
  }
  if (arena_->size() < total) {  // on an error the old one stays
    INVAR_TRY(*arena_, Allocation::make(total, "activations", device_));
  }
  INVAR_CHECK_OK(reserve_transient(max_sequences));
  if (joins_) {
    INVAR_CHECK_OK(reserve_mailbox(largest_part(rows, tail_rows, batch)));
  }
  step_shape_ = {};
  buffer_offset_ = std::move(offset);
  capacity_ = capacity;
  const ScopedFlag sizing(sizing_);
  std::vector<ops::Sequence> all;
  for (int64_t i = 0; i < max_sequences; ++i) all.push_back({i, 0});
  INVAR_CHECK_OK(bind(1, {all.data(), 1}));
  if (capacity > states_capacity_) {
    INVAR_CHECK_OK(reserve_states(max_sequences));
  }
  // Binds the largest steps, so that scratch and shared memory is allocated before the first step.
  // The last one stays bound: a step of its shape, such as that of a verification, finds it so.
  const int64_t shared_by = (rows + capacity - 1) / capacity;
  for (auto [count, of_each] :
       {std::pair{max_sequences, int64_t{1}}, {shared_by, rows / shared_by}, {int64_t{1}, tail_rows}}) {
    for (ops::Sequence& s : all) s.past = capacity - of_each;
    INVAR_CHECK_OK(bind(of_each, {all.data(), static_cast<size_t>(count)}));
  }
  return host_ports ? reserve_ports(size, std::array{tail, batch}) : Status();
}

// The most bytes that a rank hands to the others at once.
int64_t Executor::largest_part(int64_t rows, int64_t tail_rows, const StepShape& batch) const {
  uint64_t most = 0;
  ops::View view;
  for (const plan::Join& join : executable_->joins) {
    const PreparedNode& n = executable_->nodes[static_cast<size_t>(join.node)];
    const StepShape one{1, n.feeds_state ? rows : tail_rows, batch.past};
    for (const plan::Operand& part : n.node->in)
      for (const StepShape& step : {one, batch})
        most = std::max(most, executable_->shape(part.index, step, view));
  }
  return static_cast<int64_t>(most);
}

// States of fixed size lie together: a snapshot is one copy.
Status Executor::reserve_states(int64_t max_sequences) {
  const Error too_large = bad_input("the memory of " + std::to_string(max_sequences) + " sequences of " +
                                    std::to_string(capacity_) + " positions is too large for any machine");
  const Executable& e = *executable_;
  uint64_t all = 0, kept = 0, fixed_bytes = 0;
  std::vector<size_t> of_page;
  for (const bool fixed : {true, false}) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const PreparedNode& prepared = e.nodes[i];
      BoundNode& n = nodes_[i];
      if (!prepared.contract->stateful || e.is_transient(i) ||
          has_fixed_state(prepared.kernel, n.call) != fixed)
        continue;
      // A state of positions may be written twice with the same bytes.
      if (const size_t owner = fixed ? i : state_owner(e, i); owner != i) {
        const BoundNode& first = nodes_[owner];
        n.slot_bytes = first.slot_bytes, n.paged = first.paged;
        n.stateful = first.stateful, n.states_offset = first.states_offset;
        continue;
      }
      n.slot_bytes = Allocation::round_up(prepared.kernel.state_bytes(n.call, capacity_));
      uint64_t bytes;
      if (__builtin_mul_overflow(n.slot_bytes, static_cast<uint64_t>(max_sequences), &bytes) ||
          (all += bytes) >= Executable::kTooLarge)
        return too_large;
      n.paged = !fixed;
      if (n.paged) {
        n.stateful = of_page.size();
        of_page.push_back(prepared.kernel.state_bytes(n.call, ops::kPagePositions));
      } else {
        n.states_offset = kept, kept += bytes;
      }
    }
    if (fixed) fixed_bytes = kept;
  }
  const std::string purpose = "memory between steps (" + std::to_string(max_sequences) + " x " +
                              std::to_string(capacity_) + " positions)";
  states_ = {}, states_capacity_ = 0;  // first, so that both need not fit
  snapshots_ = {}, snapshot_positions_ = SnapshotPositions(snapshots_every_), fixed_bytes_ = 0;
  pages_ = {};
  INVAR_TRY(states_, Allocation::make(kept, purpose.c_str(), device_));
  INVAR_CHECK_OK(pages_.reset(of_page, max_sequences, capacity_, {device_, whole_pages_}, purpose.c_str()));
  if (max_sequences == 1) fixed_bytes_ = fixed_bytes;
  states_capacity_ = capacity_;
  return {};
}

Status Executor::copy_states(std::byte* to, const std::byte* from) const {
  if (device_) return device_->copy(to, from, fixed_bytes_);
  std::memcpy(to, from, fixed_bytes_);
  return {};
}

Status Executor::forget(int64_t sequence, int64_t keep) {
  pages_.give_back(sequence, keep);
  const int copy = fixed_bytes_ ? snapshot_positions_.go_back(keep) : -1;
  return copy < 0 ? Status() : copy_states(states_.data(), snapshots_[copy].data());
}

Status Executor::keep_snapshot() {
  if (!fixed_bytes_) return {};
  const int64_t past = header_in(step_header_).past;
  const int number = snapshot_positions_.ended(past + step_shape_.rows, step_shape_.rows);
  if (number < 0) return {};
  Allocation& copy = snapshots_[number];
  if (!copy.size()) {
    INVAR_TRY(copy, Allocation::make(fixed_bytes_, "copies of states", device_));
  }
  return copy_states(copy.data(), states_.data());
}

Status Executor::reserve_shared(size_t bytes) {
  if (shared_.size() >= bytes) return {};
  INVAR_CHECK_OK(release_memory());
  INVAR_TRY(shared_, Allocation::make(bytes, "memory between phases", device_));
  // One node runs at a time, or several that share this memory (GpuKernel::shared_bytes_batch).
  for (BoundNode& n : nodes_) n.call.shared = shared_.data();
  return {};
}

Status Executor::set_source(int64_t positions) {
  if (positions == source_) return {};
  source_ = positions;
  return release_memory();  // recorded steps have the shapes before
}

Status Executor::bind(int64_t rows, std::span<const ops::Sequence> sequences) {
  const Executable& e = *executable_;
  if (bound_arena_ != arena_->data()) {  // another executor needed a larger one
    INVAR_CHECK_OK(release_memory());
    step_shape_ = {}, bound_arena_ = arena_->data();
  }
  StepHeader& header = header_in(step_header_);
  std::copy(sequences.begin(), sequences.end(), sequences_in(step_header_));
  header.past = 0;
  for (const ops::Sequence& s : sequences) header.past = std::max(header.past, s.past);
  if (!sizing_) {
    for (const ops::Sequence& s : sequences) INVAR_CHECK_OK(pages_.take(s.slot, s.past, s.past + rows));
    INVAR_CHECK_OK(pages_.publish());
  }
  const StepShape step{static_cast<int64_t>(sequences.size()), rows, past_bound(rows, header.past), source_};
  // If only `past` differs from the last step, no shape does, and only stateful nodes are bound
  // anew.
  const bool reshape = step.batch != step_shape_.batch || rows != step_shape_.rows ||
                       source_ != step_shape_.source || e.shaped_by_past;
  step_shape_ = {};
  for (size_t v = 0; reshape && v < values_.size(); ++v) {
    e.shape(static_cast<int>(v), step, values_[v]);
    const auto b = static_cast<size_t>(e.values[v].buffer);
    std::byte* const memory = of_constants_[b] ? constants_.data() : arena_->data();
    values_[v].data = memory + buffer_offset_[b] + e.values[v].offset;
  }
  if (reshape) {
    INVAR_CHECK_OK(bind_views(step));
  }
  for (size_t n = 0; n < nodes_.size(); ++n)
    if (reshape || e.nodes[n].contract->stateful) {
      INVAR_CHECK_OK(bind_node(n, step));
    }
  INVAR_CHECK_OK(schedule(reshape));
  step_shape_ = step;
  return {};
}

// Moves results that are views in this step alone, and what is a view of them, into their operand.
Status Executor::bind_views(const StepShape& step) {
  const Executable& e = *executable_;
  NodeShapes shapes;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const PreparedNode& node = e.nodes[n];
    nodes_[n].is_view = node.is_view;
    if (node.node->out.empty()) continue;
    const int v = node.node->out[0];
    if (!node.is_view && e.values[v].may_view < 0) continue;
    e.shapes(node, step, shapes);
    const int x = node.node->in[0].index;
    const int64_t offset = node.contract->alias_offset({shapes.in, shapes.out, node.attrs});
    if (node.is_view && e.values[x].offset + static_cast<uint64_t>(offset) != e.values[v].offset)
      return Error{Code::internal, e.name_of_node(n) + ": a view that moves between steps"};
    if (!node.is_view && (offset < 0 || offset % static_cast<int64_t>(Allocation::kAlign))) continue;
    nodes_[n].is_view = true;
    values_[v].data = static_cast<std::byte*>(values_[x].data) + offset;
  }
  return {};
}

void Executor::preload(int64_t rows, std::span<const ops::Sequence> sequences, bool tail) {
  const ScopedFlag sizing(sizing_);
  if (bind(rows, sequences)) preload_bound(tail);
}

Status Executor::bind_node(size_t n, const StepShape& step) {
  const PreparedNode& prepared = executable_->nodes[n];
  BoundNode& node = nodes_[n];
  node.bytes_touched = 0;
  auto count = [&node](const ops::View& v) {
    node.bytes_touched += v.elements() * static_cast<int64_t>(size_of(v.dtype));
  };
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = prepared.node->in[i];
    if (o.kind == plan::Operand::value) node.in[i] = values_[o.index];
    count(node.in[i]);
  }
  for (size_t i = 0; i < node.out.size(); ++i) count(node.out[i] = values_[prepared.node->out[i]]);
  node.call = {node.in, node.out, prepared.attrs};
  node.call.shared = shared_.data();
  if (executable_->is_transient(n)) {
    INVAR_CHECK_OK(bind_transient(node, prepared.kernel, step.batch));
  } else if (prepared.contract->stateful) {
    if (!node.paged) {
      node.call.state = states_.data() + node.states_offset, node.call.slot_bytes = node.slot_bytes;
    } else if (!sizing_) {
      node.call.pages = pages_.table(), node.call.slot_pages = pages_.per_sequence();
      node.call.state = reinterpret_cast<void*>(pages_.offset(node.stateful));
    }
    node.call.sequences = sequences_in(header_of_calls());
    node.call.past = step.past, node.call.capacity = capacity_;
    const int64_t touched = step.batch * static_cast<int64_t>(node.slot_bytes);
    node.bytes_touched += node.paged ? touched / capacity_ * (step.past + step.rows) : touched;
  }
  INVAR_CHECK_OK(bind_call(n));
  if (device_ && executable_->is_transient(n)) node.call.gpu.past_now = &header_in(transient_header_).past;
  node.shared_bytes = prepared.kernel.shared_bytes(node.call);
  return reserve_shared(node.shared_bytes);
}

Status Executor::reserve_transient(int64_t max_sequences) {
  bool some = false;
  for (size_t n = 0; n < nodes_.size(); ++n) some |= executable_->is_transient(n);
  const size_t bytes = sizeof(StepHeader) + static_cast<size_t>(max_sequences) * sizeof(ops::Sequence);
  if (!some || transient_header_.size() >= bytes) return {};
  INVAR_TRY(Allocation header, Allocation::make(bytes, "positions"));
  for (int64_t i = 0; i < max_sequences; ++i) sequences_in(header)[i] = {i, 0};
  if (!device_) {
    transient_header_ = std::move(header);
    return {};
  }
  INVAR_TRY(transient_header_, Allocation::make(bytes, "positions", device_));
  INVAR_CHECK_OK(device_->upload(transient_header_.data(), header.data(), bytes));
  return device_->wait();
}

Status Executor::bind_transient(BoundNode& node, const ops::KernelRef& kernel, int64_t sequences) {
  node.slot_bytes = Allocation::round_up(kernel.state_bytes(node.call, 0));
  const size_t bytes = static_cast<size_t>(sequences) * node.slot_bytes;
  if (node.transient.size() < bytes) {
    INVAR_CHECK_OK(release_memory());
    INVAR_TRY(node.transient, Allocation::make(bytes, "memory of an operation", device_));
  }
  node.call.state = node.transient.data(), node.call.slot_bytes = node.slot_bytes;
  node.call.sequences = sequences_in(transient_header_);
  return {};
}

Status Executor::check_libraries() const {
  if (!uses_libraries_) return {};
  for (const PreparedNode& n : executable_->nodes)
    if (n.library && n.library->failed())
      return Error{Code::internal, std::string(n.library->name) + " " + n.library->version() +
                                       " refused a call, perhaps for want of memory; --operation-set "
                                       "reproducible needs no library"};
  return {};
}

Error Executor::out_of_bounds_error(size_t node, const ops::OutOfBounds& out_of_bounds) const {
  Error error = error_of(out_of_bounds, nodes_[node].in, executable_->name_of_node(node) + ": ");
  // Of one branch alone, as an index into one element (onnx.23).
  if (const plan::Origin& origin = executable_->nodes[node].node->origin; origin.op == "If")
    error.message = plan::text_of(origin) +
                    "these inputs ask for the branch whose results have another rank; the rest of the model "
                    "compiles with the other branch alone";
  return error;
}

Status Executor::read_output(int v, size_t begin,
                             const std::function<void(std::span<const std::byte>)>& take) {
  const ops::View view = port(v);
  take(std::span(static_cast<const std::byte*>(view.data), bytes_of(view)).subspan(begin));
  return {};
}

size_t Executor::bytes() const {
  size_t copies = 0;
  for (const Allocation& copy : snapshots_) copies += copy.size();
  for (const BoundNode& n : nodes_) copies += n.transient.size();
  return (shares_arena_ ? 0 : arena_->size()) + constants_.size() + states_.size() + copies + pages_.bytes() +
         shared_.size();
}

}  // namespace invar::run
