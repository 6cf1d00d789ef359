// The memory of a program: reserve() allocates it once for the largest steps, bind() points the
// nodes of one step into it.
#include <algorithm>
#include <cstring>

#include "run/prepare/program.h"

namespace invar::run {

uint64_t Program::shape(int v, const StepShape& step, ops::View& view) const {
  const plan::Value& value = plan_->values[v];
  view.dtype = value.dtype;
  view.rank = static_cast<int>(value.shape.size());
  view.pitch = values_[v].pitch;
  // A dimension of 0 makes the tensor empty, but kernels multiply the other dimensions, so their
  // product must not overflow either.
  uint64_t bytes = size_of(value.dtype);
  bool empty = false;
  for (int i = 0; i < view.rank; ++i) {
    const plan::DimRef& d = value.shape[i];
    int64_t n = d.value;
    if (d.symbol >= 0) {
      const Symbol s = symbols_[d.symbol];
      n = s == Symbol::batch ? step.batch : s == Symbol::seq ? step.rows : step.past;
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

Status Program::reserve(int64_t rows, int64_t tail_rows, int64_t capacity, int64_t max_sequences,
                        bool host_ports) {
  std::vector<uint64_t> size(buffer_offset_.size());
  for (size_t v = 0; v < values_.size(); ++v) {
    ops::View view;
    const StepShape one{1, values_[v].feeds_state ? rows : tail_rows, capacity};
    const StepShape batch{max_sequences, 1, capacity};
    uint64_t& bytes = size[values_[v].buffer];
    for (const StepShape& step : {one, batch})
      bytes = std::max(bytes, shape(static_cast<int>(v), step, view));
  }
  uint64_t total = 0;
  std::vector<uint64_t> offset(size.size());
  for (size_t b = 0; b < size.size(); ++b) {
    offset[b] = total;
    if (size[b] >= kTooLarge || (total += Allocation::round_up(size[b])) >= kTooLarge)
      return bad_input("the plan's tensors are too large for any memory");
  }
  if (device_) {  // its queue may still use the memory that is replaced
    INVAR_CHECK_OK(device_->wait());
  }
  if (!step_header_.size()) {
    const uint64_t bytes = sizeof(StepHeader) + static_cast<uint64_t>(max_sequences) * sizeof(ops::Sequence);
    INVAR_TRY(step_header_, device_ ? Allocation::make_pinned(bytes, "positions", device_)
                                    : Allocation::make(bytes, "positions"));
    INVAR_TRY(device_step_header_, Allocation::make(device_ ? bytes : 0, "positions", device_));
  }
  graphs_.clear();
  INVAR_TRY(arena_, Allocation::make(total, "activations", device_));  // on an error the old one stays
  step_shape_ = {};
  buffer_offset_ = std::move(offset);
  capacity_ = capacity;
  scratch_.resize(workers_);
  std::vector<ops::Sequence> all;
  for (int64_t i = 0; i < max_sequences; ++i) all.push_back({i, 0});
  INVAR_CHECK_OK(bind(1, {all.data(), 1}));
  if (!states_.size()) {
    INVAR_CHECK_OK(reserve_states(max_sequences));
  }
  // Binds the largest steps, so that scratch and shared memory is allocated before the first step.
  for (auto [count, of_each] :
       {std::pair{max_sequences, int64_t{1}}, {int64_t{1}, tail_rows}, {int64_t{1}, rows}}) {
    for (ops::Sequence& s : all) s.past = capacity - of_each;
    INVAR_CHECK_OK(bind(of_each, {all.data(), static_cast<size_t>(count)}));
  }
  return device_ && host_ports ? reserve_ports(size) : Status();
}

Status Program::reserve_states(int64_t max_sequences) {
  uint64_t total = 0;
  for (PreparedNode& n : nodes_) {
    if (!n.contract->stateful) continue;
    n.slot_bytes = Allocation::round_up(n.kernel.state_bytes(n.call, capacity_)), n.states_offset = total;
    uint64_t bytes;
    if (__builtin_mul_overflow(n.slot_bytes, static_cast<uint64_t>(max_sequences), &bytes) ||
        (total += bytes) >= kTooLarge)
      return bad_input("the memory of " + std::to_string(max_sequences) + " sequences of " +
                       std::to_string(capacity_) + " positions is too large for any machine");
  }
  const std::string purpose = "memory between steps (" + std::to_string(max_sequences) + " x " +
                              std::to_string(capacity_) + " positions)";
  INVAR_TRY(states_, Allocation::make(total, purpose.c_str(), device_));
  return {};
}

Status Program::reserve_shared(size_t bytes) {
  if (shared_.size() >= bytes) return {};
  if (device_) {
    INVAR_CHECK_OK(device_->wait());
  }
  graphs_.clear();  // they hold pointers into the old memory
  INVAR_TRY(shared_, Allocation::make(bytes, "memory between phases", device_));
  // One node runs at a time, or several that share this memory (GpuKernel::shared_bytes_batch).
  for (PreparedNode& n : nodes_) n.call.shared = shared_.data();
  return {};
}

Status Program::bind(int64_t rows, std::span<const ops::Sequence> sequences) {
  StepHeader& header = *reinterpret_cast<StepHeader*>(step_header_.data());
  std::copy(sequences.begin(), sequences.end(), sequences_in(step_header_));
  header.past = 0;
  for (const ops::Sequence& s : sequences) header.past = std::max(header.past, s.past);
  const StepShape step{static_cast<int64_t>(sequences.size()), rows,
                       device_ ? past_bound(rows, header.past) : header.past};
  // If only `past` differs from the last step, no shape does, and only stateful nodes are bound
  // anew.
  const bool reshape = step.batch != step_shape_.batch || rows != step_shape_.rows || shaped_by_past_;
  step_shape_ = {};
  for (size_t v = 0; reshape && v < values_.size(); ++v) {
    PreparedValue& value = values_[v];
    shape(static_cast<int>(v), step, value.view);
    value.view.data = arena_.data() + buffer_offset_[value.buffer] + value.offset;
  }
  for (PreparedNode& n : nodes_)
    if (reshape || n.contract->stateful) {
      INVAR_CHECK_OK(bind(n, step));
    }
  if (device_ && reshape)
    for (size_t n = 0, end; n < nodes_.size(); n = end) {
      end = concurrent_end(n);
      if (end > n + 1 && nodes_[n].kernel.gpu->shared_bytes_batch) {
        INVAR_CHECK_OK(reserve_shared(nodes_[n].kernel.gpu->shared_bytes_batch(calls(n, end))));
      }
    }
  if (!device_) schedule_waves();
  step_shape_ = step;
  return {};
}

Status Program::bind(PreparedNode& node, const StepShape& step) {
  node.bytes_touched = 0;
  auto count = [&node](const ops::View& v) {
    node.bytes_touched += v.elements() * static_cast<int64_t>(size_of(v.dtype));
  };
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind == plan::Operand::value) node.in[i] = values_[o.index].view;
    count(node.in[i]);
  }
  for (size_t i = 0; i < node.out.size(); ++i) count(node.out[i] = values_[node.node->out[i]].view);
  node.call = {node.in, node.out, node.attrs};
  node.call.shared = shared_.data();
  if (node.fused_count) {
    node.epilogue = make_epilogue(node);
    node.call.cpu.epilogue = &node.epilogue;
  }
  if (device_) {
    StepHeader* const header = reinterpret_cast<StepHeader*>(device_step_header_.data());
    node.call.gpu = {&header->past, &header->fault};
  }
  if (node.contract->stateful) {
    node.call.state = states_.data() + node.states_offset, node.call.slot_bytes = node.slot_bytes;
    node.call.sequences = sequences_in(device_ ? device_step_header_ : step_header_);
    node.call.past = step.past, node.call.capacity = capacity_;
    node.bytes_touched +=
        step.batch * static_cast<int64_t>(node.slot_bytes) / capacity_ * (step.past + step.rows);
  }
  const ops::CpuKernel* const k = node.kernel.cpu;
  for (int phase = 0; k && phase < k->phases; ++phase)
    node.units[phase] = node.is_view ? 0 : std::max<int64_t>(k->units(node.call, phase), 0);
  if (k && k->scratch_bytes) {
    const size_t bytes = k->scratch_bytes(node.call);
    for (Allocation& b : scratch_)
      if (b.size() < bytes) {
        INVAR_TRY(b, Allocation::make(bytes, "scratch"));
      }
  }
  node.shared_bytes = node.kernel.shared_bytes(node.call);
  return reserve_shared(node.shared_bytes);
}

std::vector<const ops::Call*> Program::calls(size_t begin, size_t end) const {
  std::vector<const ops::Call*> calls;
  for (; begin < end; ++begin) calls.push_back(&nodes_[begin].call);
  return calls;
}

Status Program::feed(int v, std::span<const std::byte> bytes) {
  if (device_) fed_on_device_.erase(v);
  if (bytes.empty()) return {};
  ops::View& view = values_[v].view;
  const bool in_place = !device_ && reinterpret_cast<uintptr_t>(bytes.data()) % size_of(view.dtype) == 0;
  if (device_ && !inputs_[v].size()) {
    INVAR_TRY(inputs_[v], Allocation::make_pinned(bytes.size(), "an input", device_));
  }
  std::byte* const own = device_ ? inputs_.at(v).data() : arena_.data() + buffer_offset_[values_[v].buffer];
  if (!in_place) std::memcpy(own, bytes.data(), bytes.size());
  if (device_) return {};
  void* const at =
      in_place ? const_cast<std::byte*>(bytes.data()) : own;  // kernels do not write their inputs
  if (view.data == at) return {};
  view.data = at;
  for (ops::View* operand : readers_.at(v)) operand->data = at;
  return {};
}

ops::View Program::port(int v) const {
  ops::View view = values_[v].view;
  if (device_) view.data = inputs_.contains(v) ? inputs_.at(v).data() : result_on_host(v);
  return view;
}

size_t Program::bytes() const {
  size_t bytes = arena_.size() + states_.size() + shared_.size();
  for (const Allocation& b : scratch_) bytes += b.size();
  for (const auto* ports : {&inputs_, &outputs_})
    for (const auto& [v, b] : *ports) bytes += b.size();
  return bytes;
}

}  // namespace invar::run
