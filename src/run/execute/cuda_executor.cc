// The executor of a GPU, see cuda_executor.h.
#include "run/execute/cuda_executor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "device/peers.h"
#include "kernels/fusion/chain_kernels.h"
#include "run/execute/out_of_bounds.h"

namespace invar::run {

constexpr int64_t kGraphRows = 8;  // steps of more rows cost more than queueing their nodes
// Bytes that are sent while the piece before is hashed. Larger ones give all threads the same work,
// and take long to pin: they are for sessions that make them ready while weights are loaded.
constexpr size_t kHashedPiece = size_t{8} << 20, kLargeHashedPiece = size_t{32} << 20;
// How long a rank's kernel waits for the part of another one.
constexpr uint64_t kJoinPatience = 20'000'000'000;  // nanoseconds
constexpr size_t kPieceRows = 32;                   // of larger pieces: multiples of so many
// In so many small steps one comes again that is worth recording: at once, and in a stage of
// several after those of other groups.
constexpr size_t kSoon = 1, kSoonInStage = 8;

static bool is_selected(const std::optional<std::vector<int>>& ports, int v) {
  return !ports || std::find(ports->begin(), ports->end(), v) != ports->end();
}

CudaExecutor::CudaExecutor(std::shared_ptr<const Executable> executable, std::shared_ptr<Device> device)
    : Executor(std::move(executable), std::move(device)) {}

Status CudaExecutor::reserve_header(uint64_t bytes) {
  INVAR_TRY(step_header_, Allocation::make_pinned(bytes, "positions", device_));
  INVAR_TRY(device_step_header_, Allocation::make(bytes, "positions", device_));
  return {};
}

// The queue may still use the memory, and graphs hold pointers into it.
Status CudaExecutor::release_memory() {
  INVAR_CHECK_OK(device_->wait());
  graphs_.clear(), single_graph_.reset(), last_small_.clear();
  return {};
}

// The bound of `past` that a step's kernels are queued for. It takes few values, so that one graph
// serves many steps.
int64_t CudaExecutor::past_bound(int64_t rows, int64_t past) const {
  if (executable_->shaped_by_past || rows > kGraphRows) return past;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(past, 255));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(most + 1)) - 1, capacity_ - rows);
}

Status CudaExecutor::bind_call(size_t n) {
  StepHeader& header = header_in(device_step_header_);
  nodes_[n].call.gpu = {&header.past, &header.fault};
  return {};
}

// The end of the batch that begins at `first`, which its kernel runs together: a concurrent run of
// nodes and what is fused into them.
size_t CudaExecutor::concurrent_end(size_t first) const {
  const Executable& e = *executable_;
  size_t end = e.group_end(first);
  if (!e.nodes[first].kernel.gpu->enqueue_batch || e.nodes[first].in_prologue) return end;
  const auto joins = [](const PreparedNode& n) {
    return n.concurrent && !n.in_prologue && n.prologue.empty();
  };
  while (end < nodes_.size() && joins(e.nodes[end])) end = e.group_end(end);
  return end;
}

// Its kernel knows how the calls of a batch share memory.
Status CudaExecutor::schedule(bool reshape) {
  for (size_t n = 0, end; reshape && n < nodes_.size(); n = end) {
    end = concurrent_end(n);
    const PreparedNode& head = executable_->nodes[n];
    if ((end > n + 1 || !head.prologue.empty()) && head.kernel.gpu->shared_bytes_batch) {
      INVAR_CHECK_OK(reserve_shared(head.kernel.gpu->shared_bytes_batch(calls(n, end))));
    }
  }
  return {};
}

// For parts of so many bytes: those that all ranks reserve.
Status CudaExecutor::reserve_mailbox(int64_t part_bytes) {
  const size_t rank = static_cast<size_t>(rank_);
  if (mailbox_.size() && part_bytes <= joins_->part_bytes[rank]) return {};
  const size_t first = static_cast<size_t>(executable_->joins.at(0).node);
  const size_t bytes = ops::find_join_kernel(executable_->nodes[first].kernel.op())
                           ->mailbox_bytes(joins_->ranks(), part_bytes);
  if (!joins_->given_up.size()) {
    INVAR_TRY(joins_->given_up, Allocation::make_pinned(sizeof(uint32_t), "a word of all ranks", device_));
    std::memset(joins_->given_up.data(), 0, sizeof(uint32_t));
  }
  joins_->mailboxes[rank] = nullptr, mailbox_ = {};  // first, so that both need not fit
  INVAR_TRY(mailbox_, Allocation::make(bytes, "parts of other ranks", device_));
  joins_->mailboxes[rank] = mailbox_.data(), joins_->part_bytes[rank] = part_bytes;
  INVAR_CHECK_OK(device_->fill(mailbox_.data(), 0, bytes));
  return device_->wait();
}

ops::GpuJoin CudaExecutor::join_of(size_t node, uint32_t number) const {
  StepHeader& header = header_in(device_step_header_);
  ops::GpuJoin join;
  join.ranks = joins_->ranks(), join.rank = rank_;
  join.makers = executable_->joins[static_cast<size_t>(executable_->nodes[node].join)].makers;
  join.mailboxes = joins_->mailboxes.data();
  join.part_bytes = joins_->part_bytes[static_cast<size_t>(rank_)];
  join.number = number;
  join.base = &header.join_base, join.stalled = &header.stalled, join.patience = kJoinPatience;
  join.given_up = reinterpret_cast<const uint32_t*>(joins_->given_up.data());
  return join;
}

// Queues a join, with the addition that is fused into it.
void CudaExecutor::enqueue_join(size_t begin, size_t end, uint32_t number) const {
  ops::GpuJoin join = join_of(begin, number);
  const std::vector<const float*> added = addends(begin, end);
  if (!added.empty()) join.addend = added[0];
  const PreparedNode& node = executable_->nodes[begin];
  ops::find_join_kernel(node.kernel.op())->enqueue(nodes_[begin].call, join, device_->stream());
}

// The calls of a batch. The result of one that an addition is fused into is in the memory of the
// sum (PreparedValue::shares_slot_with).
std::vector<const ops::Call*> CudaExecutor::calls(size_t begin, size_t end) const {
  std::vector<const ops::Call*> calls;
  for (; begin < end; begin = executable_->group_end(begin)) calls.push_back(&nodes_[begin].call);
  return calls;
}
// Per call of a batch: what the addition that is fused into it adds; null: there is none. Empty: no
// call has one.
std::vector<const float*> CudaExecutor::addends(size_t begin, size_t end) const {
  const Executable& e = *executable_;
  std::vector<const float*> addends;
  bool any = false;
  for (size_t n = begin; n < end; n = e.group_end(n)) {
    addends.push_back(nullptr);
    if (!e.nodes[n].fused_count) continue;
    const plan::Operand product{plan::Operand::value, e.nodes[n].node->out[0]};
    const std::vector<plan::Operand>& in = e.nodes[n + 1].node->in;
    addends.back() = nodes_[n + 1].in[in[0] == product ? 1 : 0].as<const float>();
    any = true;
  }
  return any ? addends : std::vector<const float*>();
}

// Queues a batch with what runs in its kernels. A join with more rows than its kernel takes, and
// what is ahead of it, run one after another. `joins`: of the step, up to here.
void CudaExecutor::enqueue(size_t begin, size_t end, uint32_t& joins) const {
  const Executable& e = *executable_;
  const PreparedNode& head = e.nodes[begin];
  const ops::GpuKernel& kernel = *head.kernel.gpu;
  const std::vector<const ops::Call*> batch = calls(begin, end);
  const std::vector<const float*> added = addends(begin, end);
  std::vector<const ops::Call*> producers;
  for (size_t n : head.prologue) producers.push_back(&nodes_[n].call);
  ops::GpuFusion fusion{producers, head.prologue_kernel, added};
  ops::GpuJoin join;
  if (head.prologue_join) {
    const auto is_join = [&](size_t n) { return e.nodes[n].join >= 0; };
    const size_t at = *std::ranges::find_if(head.prologue, is_join);
    join = join_of(at, joins++);
    if (head.prologue_join->takes(producers, join)) {
      fusion.joins = head.prologue_join, fusion.join = &join;
    } else {
      for (size_t n = head.prologue[0]; n < at; ++n)
        e.nodes[n].kernel.gpu->enqueue(nodes_[n].call, device_->stream());
      enqueue_join(at, e.group_end(at), join.number);
      fusion.producers = std::span(producers).subspan(e.group_end(at) - head.prologue[0]);
    }
  }
  if (!fusion.producers.empty() || !added.empty())
    return kernel.enqueue_fused(batch, fusion, device_->stream());
  if (batch.size() > 1)
    kernel.enqueue_batch(batch, device_->stream());
  else
    kernel.enqueue(*batch[0], device_->stream());
}

Status CudaExecutor::feed(int v, std::span<const std::byte> bytes) {
  fed_on_device_.erase(v), in_place_.erase(v);
  if (bytes.empty()) return {};
  Allocation& input = inputs_[v];
  if (input.size() < bytes.size()) {
    INVAR_CHECK_OK(release_memory());
    INVAR_TRY(input, Allocation::make_pinned(bytes.size(), "an input", device_));
  }
  std::memcpy(input.data(), bytes.data(), bytes.size());
  return {};
}

Status CudaExecutor::feed_device(int v, const void* bytes) {
  fed_on_device_.insert(v);
  const size_t n = bytes_of(values_[v]);
  return n ? device_->copy(values_[v].data, bytes, n) : Status();
}

Status CudaExecutor::feed_in_place(int v, void* bytes) {
  fed_on_device_.insert(v);
  in_place_[v] = bytes;
  if (values_[v].data == bytes) return {};
  values_[v].data = bytes;
  for (size_t n = 0; n < nodes_.size(); ++n)  // no value is a view of an input
    for (size_t i = 0; i < nodes_[n].in.size(); ++i)
      if (executable_->nodes[n].node->in[i] == plan::Operand{plan::Operand::value, v})
        nodes_[n].in[i].data = bytes;
  return {};
}

ops::View CudaExecutor::port(int v) const {
  ops::View view = values_[v];
  view.data = inputs_.contains(v) ? inputs_.at(v).data() : result_on_host(v);
  return view;
}

// Pinned memory for the largest step of each port; it takes the system long to make.
Status CudaExecutor::reserve_ports(const std::vector<uint64_t>& buffer_sizes,
                                   std::span<const StepShape> steps) {
  const Executable& e = *executable_;
  auto reserve = [&](Allocation& b, const plan::Port& port, uint64_t bytes) -> Status {
    if (b.size() >= bytes) return {};
    INVAR_TRY(b, Allocation::make_pinned(bytes, port.name.c_str(), device_));
    return {};
  };
  for (const plan::Port& p : e.plan->inputs)
    if (is_selected(selected_inputs_, p.value)) {
      INVAR_CHECK_OK(
          reserve(inputs_[p.value], p, Allocation::round_up(buffer_sizes[e.values[p.value].buffer])));
    }
  for (const plan::Port& p : e.plan->outputs) {
    if (inputs_.contains(p.value) || !is_selected(selected_outputs_, p.value)) continue;
    uint64_t bytes = 0;
    ops::View view;
    for (const StepShape& s : steps)
      bytes = std::max(bytes, e.shape(p.value, {s.batch, std::min(s.rows, whole_rows_), s.past}, view));
    INVAR_CHECK_OK(
        reserve(outputs_[p.value], p, 2 * std::max(Allocation::round_up(bytes), Allocation::kAlign)));
  }
  return {};
}

std::byte* CudaExecutor::result_on_host(int v) const {
  const Allocation& halves = outputs_.at(v);
  return halves.data() + (second_half_ ? halves.size() / 2 : 0);
}

// Queues the uploads and kernels of a step, which is what a graph records.
Status CudaExecutor::queue(bool tail) {
  const Executable& e = *executable_;
  INVAR_CHECK_OK(
      device_->upload(device_step_header_.data(), step_header_.data(),
                      sizeof(StepHeader) + static_cast<size_t>(step_shape_.batch) * sizeof(ops::Sequence)));
  for (const plan::Port& p : e.plan->inputs) {
    const ops::View& view = values_[p.value];
    if (e.values[p.value].elsewhere) continue;
    if (const size_t bytes = bytes_of(view); bytes && !fed_on_device_.contains(p.value)) {
      INVAR_CHECK_OK(device_->upload(view.data, inputs_.at(p.value).data(), bytes));
    }
  }
  uint32_t joins = 0;
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = concurrent_end(n);
    if ((!tail && !e.nodes[n].feeds_state) || e.nodes[n].in_prologue) continue;
    if (e.nodes[n].is_constant || e.nodes[n].in_chain || nodes_[n].is_view) continue;
    if (e.nodes[n].join >= 0)
      enqueue_join(n, end, joins++);
    else if (!e.nodes[n].chain.empty())
      enqueue_chain(n);
    else
      enqueue(n, end, joins);
  }
  return {};
}

// Queues the chain that ends with a node.
void CudaExecutor::enqueue_chain(size_t last) const {
  const Executable& e = *executable_;
  std::vector<size_t> nodes = e.nodes[last].chain;
  nodes.push_back(last);
  std::vector<ops::ChainLink> links;
  for (const size_t n : nodes) links.push_back({e.nodes[n].kernel.op(), &nodes_[n].call});
  if (e.nodes[last].chain_kernel->fits(links))
    return e.nodes[last].chain_kernel->enqueue(links, device_->stream());
  for (const size_t n : nodes) e.nodes[n].kernel.gpu->enqueue(nodes_[n].call, device_->stream());
}

// Queues the nodes that steps find done.
void CudaExecutor::queue_constants() const {
  for (size_t n = 0; n < nodes_.size(); ++n)
    if (executable_->nodes[n].is_constant && !nodes_[n].is_view)
      executable_->nodes[n].kernel.gpu->enqueue(nodes_[n].call, device_->stream());
}

// Whether a small step came soon before.
bool CudaExecutor::comes_again(const Step& step) {
  const bool again = std::ranges::find(last_small_, step) != last_small_.end();
  last_small_.push_back(step);
  if (last_small_.size() > (shares_arena() ? kSoonInStage : kSoon)) last_small_.pop_front();
  return again;
}

// Queues a step, or replays what was recorded of it. One that joins with other ranks is recorded
// whatever its size: recording loads its kernels, which must not happen while another rank's
// kernels wait for this one.
Status CudaExecutor::launch(bool tail) {
  const bool recurs = !executable_->shaped_by_past && step_shape_.rows <= kGraphRows;
  if (!recurs && !joins_) return queue(tail);
  const Step step{step_shape_.batch, step_shape_.rows, step_shape_.past, tail, fed_on_device_, in_place_};
  if (!recurs)
    single_graph_.reset();
  else if (!comes_again(step) && !joins_ && !graphs_.contains(step))
    return queue(tail);
  auto& graph = recurs ? graphs_[step] : single_graph_;
  if (!graph) {
    INVAR_CHECK_OK(device_->begin_capture());
    const Status queued = queue(tail);
    INVAR_TRY(graph, device_->end_capture());
    INVAR_CHECK_OK(queued);
    if (joins_) {
      INVAR_CHECK_OK(make_ready(*device_, *graph));
    }
  }
  return joins_ ? replay_together(*graph) : device_->replay(*graph);
}

// Starts when all ranks have ended the step before and are ready for this one, and goes on when all
// have started it: then no rank takes memory, or waits for its device, before another one's part is
// on its way.
Status CudaExecutor::replay_together(const Device::Graph& graph) {
  INVAR_CHECK_OK(joins_->meet());
  if (joins_->has_few_marks()) {
    INVAR_CHECK_OK(device_->fill(mailbox_.data(), 0, mailbox_.size()));
    INVAR_CHECK_OK(device_->wait());
    INVAR_CHECK_OK(joins_->meet(RankJoins::Then::cleared));
  }
  for (const int64_t bytes : joins_->part_bytes)
    if (bytes != joins_->part_bytes[0]) return Error{Code::internal, "ranks have unequal mailboxes"};
  header_in(step_header_).join_base = joins_->base();
  INVAR_CHECK_OK(device_->replay(graph));
  Status met = joins_->meet(RankJoins::Then::started);
  if (!met) (void)device_->wait();  // it ends, since each of its waits has a bound
  return met;
}

bool CudaExecutor::is_downloaded(int v, bool tail) const {
  if (left_on_device() || (!tail && !executable_->values[v].feeds_state)) return false;
  return is_selected(selected_outputs_, v) && (selected_outputs_ || !inputs_.contains(v));
}

// Queued behind the nodes, and never recorded in a graph, since the target alternates between
// steps.
Status CudaExecutor::download_outputs(bool tail) {
  second_half_ = !second_half_;
  for (const plan::Port& p : executable_->plan->outputs) {
    if (!is_downloaded(p.value, tail)) continue;
    const ops::View& view = values_[p.value];
    const size_t bytes = bytes_of(view);
    if (Allocation& halves = outputs_[p.value]; !halves.size()) {
      INVAR_TRY(halves, Allocation::make_pinned(2 * std::max(Allocation::round_up(bytes), Allocation::kAlign),
                                                p.name.c_str(), device_));
    }
    INVAR_CHECK_OK(device_->download(result_on_host(p.value), view.data, bytes));
  }
  return device_->download(step_header_.data(), device_step_header_.data(), sizeof(StepHeader));
}

// Whole rows of an output that is left on the device, about so many bytes.
static size_t piece_of(const ops::View& view, size_t bytes) {
  const size_t row = static_cast<size_t>(view.dim[view.rank - 1]) * size_of(view.dtype),
               rows = std::max(bytes / row, size_t{1});
  return (rows > kPieceRows ? rows - rows % kPieceRows : rows) * row;
}

Status CudaExecutor::reserve_pieces(size_t bytes) {
  for (Allocation& piece : pieces_)
    if (piece.size() < bytes) {
      INVAR_TRY(piece, Allocation::make_pinned(bytes, "outputs", device_));
    }
  return {};
}

Status CudaExecutor::read_output(int v, size_t begin,
                                 const std::function<void(std::span<const std::byte>)>& take) {
  if (!left_on_device()) return Executor::read_output(v, begin, take);
  const ops::View& view = values_[v];
  const auto* const from = static_cast<const std::byte*>(view.data) + begin;
  const size_t bytes = bytes_of(view) - begin,
               most = std::min(bytes, piece_of(view, std::max(kHashedPiece, pieces_[0].size())));
  INVAR_CHECK_OK(reserve_pieces(most));
  const auto send = [&](size_t at) {
    return device_->download(pieces_[at / most % 2].data(), from + at, std::min(most, bytes - at));
  };
  INVAR_CHECK_OK(send(0));
  for (size_t at = 0; at < bytes; at += most) {
    INVAR_CHECK_OK(device_->wait());
    if (at + most < bytes) {
      INVAR_CHECK_OK(send(at + most));
    }
    take({pieces_[at / most % 2].data(), std::min(most, bytes - at)});
  }
  return {};
}

Status CudaExecutor::run(bool tail, const std::function<void()>& overlapped) {
  device_->make_current();
  StepHeader& header = header_in(step_header_);
  header.fault = header.stalled = 0;
  if (!has_constants_) queue_constants();
  INVAR_CHECK_OK(launch(tail));
  INVAR_CHECK_OK(download_outputs(tail));
  if (overlapped) overlapped();
  INVAR_CHECK_OK(device_->wait());
  has_constants_ = true;
  INVAR_CHECK_OK(check_libraries());
  if (header.stalled)
    return Error{Code::failed, "tensor-parallel: rank " + std::to_string(header.stalled - 1) + " gave rank " +
                                   std::to_string(rank_) +
                                   " no part of a layer for 20 seconds; start again, or with fewer ranks"};
  return header.fault ? find_fault(tail) : Status();
}

// Records the step, which loads the code of its kernels, and throws the graph away. An error will
// come again at the step itself.
void CudaExecutor::preload_bound(bool tail) {
  const auto has_host_side = [&](const plan::Port& p) { return inputs_.contains(p.value); };
  if (!std::ranges::all_of(executable_->plan->inputs, has_host_side)) return;
  device_->make_current();
  if (!device_->begin_capture()) return;
  queue_constants();
  const Status queued = queue(tail);
  const auto graph = device_->end_capture();
  for (const plan::Port& p : executable_->plan->outputs)
    if (queued && graph && tail && left_on_device())
      (void)reserve_pieces(
          std::min(bytes_of(values_[p.value]), piece_of(values_[p.value], kLargeHashedPiece)));
}

// Some index was out of bounds: repeats the step node by node until it shows which. What a step
// writes does not depend on what it wrote before, so repeating it changes nothing. A sum replaces
// the product that it was fused into.
Status CudaExecutor::find_fault(bool tail) {
  header_in(step_header_).fault = 0;
  INVAR_CHECK_OK(device_->upload(device_step_header_.data(), step_header_.data(), sizeof(StepHeader)));
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const PreparedNode& node = executable_->nodes[n];
    if (!tail && !node.feeds_state) continue;
    if (node.join >= 0) break;  // it would wait for the others
    if (nodes_[n].is_view) continue;
    INVAR_TRY(const auto out_of_bounds, find_out_of_bounds(*node.contract, nodes_[n].call, *device_));
    if (out_of_bounds) return out_of_bounds_error(n, *out_of_bounds);
    node.kernel.gpu->enqueue(nodes_[n].call, device_->stream());
  }
  return unconfirmed_fault_error();
}

size_t CudaExecutor::bytes() const {
  size_t bytes = Executor::bytes();
  for (const auto* ports : {&inputs_, &outputs_})
    for (const auto& [v, b] : *ports) bytes += b.size();
  for (const Allocation& piece : pieces_) bytes += piece.size();
  return bytes + mailbox_.size();
}

}  // namespace invar::run
