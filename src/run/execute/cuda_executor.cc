// A step on a GPU: ports go there, nodes are queued one after another, small steps, which recur, as graphs; results come back.
#include <algorithm>
#include <bit>

#include "run/prepare/kernel_selection.h"
#include "run/prepare/program.h"

namespace invar::run {

constexpr int64_t kGraphRows = 8;  // steps of more rows cost more than queueing their nodes

// The positions that a step's kernels are queued for: few different ones, so that a graph serves many steps.
int64_t Program::bound_of(int64_t rows, int64_t past) const {
  if (shaped_by_past_ || rows > kGraphRows) return past;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(past, 255));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(most + 1)) - 1, capacity_ - rows);
}

Status Program::feed_there(int v, const void* bytes) {
  there_.insert(v);
  const size_t n = bytes_of(values_[v]);
  return n ? device_->copy(values_[v].data, bytes, n) : Status();
}

// Room for the largest step of each port.
Status Program::reserve_ports(const std::vector<uint64_t>& size) {
  auto reserve = [&](Block& b, const plan::Port& port, uint64_t times) -> Status {
    const uint64_t bytes = times * Block::round_up(size[buffer_[port.value]]);
    if (b.size() >= bytes) return {};
    INVAR_TRY(b, Block::make_pinned(bytes, port.name.c_str(), device_));
    return {};
  };
  for (const plan::Port& p : plan_->inputs) INVAR_CHECK_OK(reserve(inputs_[p.value], p, 1));
  for (const plan::Port& p : plan_->outputs)
    if (!inputs_.contains(p.value)) INVAR_CHECK_OK(reserve(outputs_[p.value], p, 2));
  return {};
}

std::byte* Program::result_on_host(int v) const {
  const Block& halves = outputs_.at(v);
  return halves.data() + (second_half_ ? halves.size() / 2 : 0);
}

Status Program::queue(bool tail) {
  INVAR_CHECK_OK(device_->upload(now_on_device_.data(), now_.data(),
                                 sizeof(Now) + static_cast<size_t>(bound_.batch) * sizeof(ops::Sequence)));
  for (const plan::Port& p : plan_->inputs)
    if (const size_t bytes = bytes_of(values_[p.value]); bytes && !there_.contains(p.value)) {
      INVAR_CHECK_OK(device_->upload(values_[p.value].data, inputs_.at(p.value).data(), bytes));
    }
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = joined_end(n);
    if (!tail && !nodes_[n].core) continue;
    const ops::Kernel& kernel = *nodes_[n].kernel;
    if (end > n + 1)
      kernel.enqueue_all(calls(n, end), device_->stream());
    else
      kernel.enqueue(nodes_[n].call, device_->stream());
  }
  return {};
}

bool Program::fetches(int v, bool tail) const {
  if (fetched_) return std::find(fetched_->begin(), fetched_->end(), v) != fetched_->end();
  return (tail || core_value_[v]) && !inputs_.contains(v);
}

// Behind the nodes, and in no graph: where results go changes from step to step.
Status Program::fetch(bool tail) {
  second_half_ = !second_half_;
  for (const plan::Port& p : plan_->outputs) {
    if (!fetches(p.value, tail)) continue;
    const size_t bytes = bytes_of(values_[p.value]);
    if (Block& halves = outputs_[p.value]; !halves.size()) {
      INVAR_TRY(halves, Block::make_pinned(2 * std::max(Block::round_up(bytes), Block::kAlign),
                                           p.name.c_str(), device_));
    }
    INVAR_CHECK_OK(device_->download(result_on_host(p.value), values_[p.value].data, bytes));
  }
  return device_->download(now_.data(), now_on_device_.data(), sizeof(Now));
}

Status Program::run_on_device(bool tail, const std::function<void()>& beside) {
  device_->enter();
  Now& now = *reinterpret_cast<Now*>(now_.data());
  now.fault = 0;
  if (shaped_by_past_ || bound_.rows > kGraphRows) {
    INVAR_CHECK_OK(queue(tail));
  } else {
    auto& graph = graphs_[{bound_.batch, bound_.rows, bound_.past, tail, there_}];
    if (!graph) {
      INVAR_CHECK_OK(device_->record());
      const Status queued = queue(tail);
      INVAR_TRY(graph, device_->recorded());
      INVAR_CHECK_OK(queued);
    }
    INVAR_CHECK_OK(device_->replay(*graph));
  }
  INVAR_CHECK_OK(fetch(tail));
  if (beside) beside();
  INVAR_CHECK_OK(device_->wait());
  INVAR_CHECK_OK(check_libraries());
  return now.fault ? find_fault(tail) : Status();
}

// Some index named no place: the step once more, node by node, until it shows which. What a step writes does not depend on
// what it wrote before.
Status Program::find_fault(bool tail) {
  reinterpret_cast<Now*>(now_.data())->fault = 0;
  INVAR_CHECK_OK(device_->upload(now_on_device_.data(), now_.data(), sizeof(Now)));
  for (Node& n : nodes_) {
    if (!tail && !n.core) continue;
    INVAR_TRY(const auto stray, stray_of(*n.reference, n.call, *device_));
    if (stray) return names_no_place(n, *stray);
    n.kernel->enqueue(n.call, device_->stream());
  }
  return unfounded_fault();
}

}  // namespace invar::run
