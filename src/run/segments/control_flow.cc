// Loops and branches (plan.16): the host reads the conditions and runs the bodies.
#include "run/segments/control_flow_state.h"

#include <algorithm>

namespace invar::run {
namespace {

// Grows memory to at least `bytes` and keeps the `filled` ones. At least doubles it, since it will
// grow again.
Status grow(const ExecutionContext& context, Allocation& memory, size_t filled, size_t bytes) {
  if (memory.size() >= bytes) return {};
  INVAR_TRY(Allocation larger,
            Allocation::make(std::max(bytes, 2 * memory.size()), "what steps give", context.device));
  ops::View old;
  old.dtype = DType::u8, old.rank = 1, old.dim[0] = static_cast<int64_t>(filled), old.data = memory.data();
  const bool on_device = context.device != nullptr;
  INVAR_CHECK_OK(copy(context, larger.data(), on_device, {old, on_device}));
  if (on_device && filled) {
    INVAR_CHECK_OK(context.device->wait());  // the copy reads the memory that is freed below
  }
  memory = std::move(larger);
  return {};
}

std::string text_of(const ops::View& v) {
  std::string s = "[";
  for (int d = 0; d < v.rank; ++d) s += (d ? ", " : "") + std::to_string(v.dim[d]);
  return s + "]";
}

}  // namespace

Status LoopCarriedValue::store(const ExecutionContext& context, const TensorRef& from) {
  INVAR_CHECK_OK(grow(context, memory_, 0, bytes_of(from.view)));
  value_ = {from.view, context.device != nullptr};
  value_.view.data = memory_.data();
  return copy(context, memory_.data(), value_.on_device, from);
}

Status ScanOutput::append(const ExecutionContext& context, const TensorRef& value) {
  const ops::View& v = value.view;
  if (count_ == 0) element_ = v;
  if (!std::equal(v.dim, v.dim + v.rank, element_.dim))
    return bad_input("step " + std::to_string(count_) + " gives a value of shape " + text_of(v) +
                     ", those before it " + text_of(element_));
  const size_t bytes = bytes_of(v);
  INVAR_CHECK_OK(grow(context, memory_, bytes_, bytes_ + bytes));
  INVAR_CHECK_OK(copy(context, memory_.data() + bytes_, context.device != nullptr, value));
  bytes_ += bytes, ++count_;
  return {};
}

ops::View ScanOutput::stacked(const ops::View& element) const {
  const ops::View& one = count_ ? element_ : element;
  ops::View v = one;
  v.rank = one.rank + 1, v.dim[0] = count_, v.data = memory_.data();
  std::copy(one.dim, one.dim + one.rank, v.dim + 1);
  return v;
}

Status ControlFlowState::weights_unchanged() {
  for (auto& body : bodies) INVAR_CHECK_OK(body->weights_unchanged());
  return {};
}
size_t ControlFlowState::bytes() const {
  size_t bytes = 0;
  for (const auto& body : bodies) bytes += body->bytes();
  for (const LoopCarriedValue& value : carried) bytes += value.bytes();
  for (const ScanOutput& scan : scans) bytes += scan.bytes();
  return bytes;
}

Status BlockExecutor::open_control_flow(int at, std::vector<plan::BlockPartition>& partition) {
  const plan::Node& n = node(at);
  auto state =
      std::make_unique<ControlFlowState>(ControlFlowState{n, node_numbers_[static_cast<size_t>(at)]});
  for (int body : n.bodies) {
    INVAR_TRY(std::unique_ptr<BlockExecutor> executor, open(plan_, partition, body, context_));
    state->bodies.push_back(std::move(executor));
  }
  if (n.op == "loop")
    state->condition_is_constant =
        state->bodies[0]->is_constant(plan_.bodies[static_cast<size_t>(n.bodies[0])].outputs[0]);
  control_flow_[at] = std::move(state);
  return {};
}

// Results stay in the memory of the node's state, or of the body that ran; nobody writes there
// until the node runs again.
Status BlockExecutor::run_control_flow(int at, std::vector<int64_t>& sizes) {
  ControlFlowState& state = *control_flow_.at(at);
  const plan::Node& n = state.node;
  Status done = n.op == "loop" ? run_loop(state, sizes) : run_branch(state, sizes);
  if (done) done = bind_dims(n.out, "its results", sizes);
  if (done) return {};
  return done.error().around(plan::text_of(n.origin) + "operation " + std::to_string(state.number) +
                             " of the plan, " + n.op + ": ");
}

Status BlockExecutor::run_branch(ControlFlowState& state, std::vector<int64_t>& sizes) {
  const plan::Node& n = state.node;
  INVAR_TRY(const uint8_t condition, read_element<uint8_t>(n.in[0].index));
  const size_t taken = condition ? 0 : 1;
  const plan::Body& body = plan_.bodies[static_cast<size_t>(n.bodies[taken])];
  BlockExecutor& executor = *state.bodies[taken];
  for (size_t i = 1; i < n.in.size(); ++i) executor.set_input(body.inputs[i - 1], value(n.in[i].index));
  INVAR_CHECK_OK(executor.run_body(sizes));
  for (size_t i = 0; i < n.out.size(); ++i) set_input(n.out[i], executor.value(body.outputs[i]));
  return {};
}

Status BlockExecutor::run_loop(ControlFlowState& state, std::vector<int64_t>& sizes) {
  const plan::Node& n = state.node;
  const plan::Body& body = plan_.bodies[static_cast<size_t>(n.bodies[0])];
  BlockExecutor& executor = *state.bodies[0];
  const auto carried = static_cast<size_t>(n.attrs.i("carried", 0));
  state.carried.resize(carried), state.scans.resize(n.out.size() - carried);
  for (ScanOutput& scan : state.scans) scan.clear();
  INVAR_TRY(const int64_t trips, read_element<int64_t>(n.in[0].index));
  INVAR_TRY(uint8_t condition, read_element<uint8_t>(n.in[1].index));
  ops::View number;
  number.dtype = DType::i64, number.dim[0] = 1, number.data = &state.iteration;
  number.rank = static_cast<int>(plan_.values[body.inputs[0]].shape.size());
  for (size_t i = 0; i < carried; ++i)
    INVAR_CHECK_OK(state.carried[i].store(context_, value(n.in[2 + i].index)));
  executor.set_input(body.inputs[0], {number, false});
  for (size_t i = 2 + carried; i < n.in.size(); ++i)
    executor.set_input(body.inputs[i - 1], value(n.in[i].index));
  bool same_shapes = false;  // the inputs have the shapes of the iteration before
  for (state.iteration = 0; state.iteration < trips && condition; ++state.iteration) {
    for (size_t i = 0; i < carried; ++i) executor.set_input(body.inputs[1 + i], state.carried[i].value());
    INVAR_CHECK_OK(same_shapes ? executor.rerun() : executor.run_body(sizes));
    // A constant condition is read once, since reading it waits for a GPU.
    if (state.iteration == 0 || !state.condition_is_constant) {
      INVAR_TRY(condition, executor.read_element<uint8_t>(body.outputs[0]));
    }
    for (size_t i = 0; i < state.scans.size(); ++i)
      INVAR_CHECK_OK(state.scans[i].append(context_, executor.value(body.outputs[1 + carried + i])));
    same_shapes = executor.shapes_decide_sizes();
    for (size_t i = 0; i < carried; ++i) {
      const TensorRef next = executor.value(body.outputs[1 + i]);
      same_shapes &= state.carried[i].has_shape(next.view);
      INVAR_CHECK_OK(state.carried[i].store(context_, next));
    }
  }
  for (size_t i = 0; i < carried; ++i) set_input(n.out[i], state.carried[i].value());
  for (size_t i = 0; i < state.scans.size(); ++i) {
    const plan::Value& out = plan_.values[n.out[carried + i]];
    ops::View element;  // of a loop without iterations; an unknown dimension is 0
    element.dtype = out.dtype, element.rank = static_cast<int>(out.shape.size()) - 1;
    for (size_t d = 1; d < out.shape.size(); ++d)
      element.dim[d - 1] = out.shape[d].symbol < 0
                               ? out.shape[d].value
                               : std::max<int64_t>(context_.symbols.evaluate(out.shape[d].symbol, sizes), 0);
    set_input(n.out[carried + i], {state.scans[i].stacked(element), context_.device != nullptr});
  }
  return {};
}

}  // namespace invar::run
