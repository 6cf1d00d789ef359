// Runs a bound step on a GPU: uploads inputs, queues the nodes one after another, downloads
// outputs. Small steps recur, so they are recorded and replayed as CUDA graphs.
#include <algorithm>
#include <bit>

#include "run/execute/out_of_bounds.h"
#include "run/prepare/program.h"

namespace invar::run {

constexpr int64_t kGraphRows = 8;  // steps of more rows cost more than queueing their nodes

// The bound of `past` that a step's kernels are queued for. It takes few values, so that one graph
// serves many steps.
int64_t Program::past_bound(int64_t rows, int64_t past) const {
  if (shaped_by_past_ || rows > kGraphRows) return past;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(past, 255));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(most + 1)) - 1, capacity_ - rows);
}

Status Program::feed_device(int v, const void* bytes) {
  fed_on_device_.insert(v);
  const ops::View& view = values_[v].view;
  const size_t n = bytes_of(view);
  return n ? device_->copy(view.data, bytes, n) : Status();
}

// Pinned memory for the largest step of each port.
Status Program::reserve_ports(const std::vector<uint64_t>& buffer_sizes) {
  auto reserve = [&](Allocation& b, const plan::Port& port, uint64_t times) -> Status {
    const uint64_t bytes = times * Allocation::round_up(buffer_sizes[values_[port.value].buffer]);
    if (b.size() >= bytes) return {};
    INVAR_TRY(b, Allocation::make_pinned(bytes, port.name.c_str(), device_));
    return {};
  };
  for (const plan::Port& p : plan_->inputs) INVAR_CHECK_OK(reserve(inputs_[p.value], p, 1));
  for (const plan::Port& p : plan_->outputs)
    if (!inputs_.contains(p.value)) {
      INVAR_CHECK_OK(reserve(outputs_[p.value], p, 2));
    }
  return {};
}

std::byte* Program::result_on_host(int v) const {
  const Allocation& halves = outputs_.at(v);
  return halves.data() + (second_half_ ? halves.size() / 2 : 0);
}

// Queues the uploads and kernels of a step, which is what a graph records.
Status Program::queue(bool tail) {
  INVAR_CHECK_OK(
      device_->upload(device_step_header_.data(), step_header_.data(),
                      sizeof(StepHeader) + static_cast<size_t>(step_shape_.batch) * sizeof(ops::Sequence)));
  for (const plan::Port& p : plan_->inputs) {
    const ops::View& view = values_[p.value].view;
    if (const size_t bytes = bytes_of(view); bytes && !fed_on_device_.contains(p.value)) {
      INVAR_CHECK_OK(device_->upload(view.data, inputs_.at(p.value).data(), bytes));
    }
  }
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = concurrent_end(n);
    if (!tail && !nodes_[n].feeds_state) continue;
    const ops::GpuKernel& kernel = *nodes_[n].kernel.gpu;
    if (end > n + 1)
      kernel.enqueue_batch(calls(n, end), device_->stream());
    else
      kernel.enqueue(nodes_[n].call, device_->stream());
  }
  return {};
}

bool Program::is_downloaded(int v, bool tail) const {
  if (selected_outputs_)
    return std::find(selected_outputs_->begin(), selected_outputs_->end(), v) != selected_outputs_->end();
  return (tail || values_[v].feeds_state) && !inputs_.contains(v);
}

// Queued behind the nodes, and never recorded in a graph, since the target alternates between
// steps.
Status Program::download_outputs(bool tail) {
  second_half_ = !second_half_;
  for (const plan::Port& p : plan_->outputs) {
    if (!is_downloaded(p.value, tail)) continue;
    const ops::View& view = values_[p.value].view;
    const size_t bytes = bytes_of(view);
    if (Allocation& halves = outputs_[p.value]; !halves.size()) {
      INVAR_TRY(halves, Allocation::make_pinned(2 * std::max(Allocation::round_up(bytes), Allocation::kAlign),
                                                p.name.c_str(), device_));
    }
    INVAR_CHECK_OK(device_->download(result_on_host(p.value), view.data, bytes));
  }
  return device_->download(step_header_.data(), device_step_header_.data(), sizeof(StepHeader));
}

Status Program::run_on_device(bool tail, const std::function<void()>& overlapped) {
  device_->make_current();
  StepHeader& header = *reinterpret_cast<StepHeader*>(step_header_.data());
  header.fault = 0;
  if (shaped_by_past_ || step_shape_.rows > kGraphRows) {
    INVAR_CHECK_OK(queue(tail));
  } else {
    auto& graph = graphs_[{step_shape_.batch, step_shape_.rows, step_shape_.past, tail, fed_on_device_}];
    if (!graph) {
      INVAR_CHECK_OK(device_->begin_capture());
      const Status queued = queue(tail);
      INVAR_TRY(graph, device_->end_capture());
      INVAR_CHECK_OK(queued);
    }
    INVAR_CHECK_OK(device_->replay(*graph));
  }
  INVAR_CHECK_OK(download_outputs(tail));
  if (overlapped) overlapped();
  INVAR_CHECK_OK(device_->wait());
  INVAR_CHECK_OK(check_libraries());
  return header.fault ? find_fault(tail) : Status();
}

// Some index was out of bounds: repeats the step node by node until it shows which. What a step
// writes does not depend on what it wrote before, so repeating it changes nothing.
Status Program::find_fault(bool tail) {
  reinterpret_cast<StepHeader*>(step_header_.data())->fault = 0;
  INVAR_CHECK_OK(device_->upload(device_step_header_.data(), step_header_.data(), sizeof(StepHeader)));
  for (PreparedNode& n : nodes_) {
    if (!tail && !n.feeds_state) continue;
    INVAR_TRY(const auto out_of_bounds, find_out_of_bounds(*n.contract, n.call, *device_));
    if (out_of_bounds) return out_of_bounds_error(n, *out_of_bounds);
    n.kernel.gpu->enqueue(n.call, device_->stream());
  }
  return unconfirmed_fault_error();
}

}  // namespace invar::run
