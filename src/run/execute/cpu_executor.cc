// The executor of the host, see cpu_executor.h.
#include "run/execute/cpu_executor.h"

#include <algorithm>
#include <cstring>

#include "num/env.h"

namespace invar::run {

CpuExecutor::CpuExecutor(std::shared_ptr<const Executable> executable, Pool& pool)
    : Executor(std::move(executable), nullptr),
      pool_(pool),
      parts_(chosen_parts(*executable_)),
      unread_(parts_.size()),
      rows_of_part_(parts_.size(), -1),
      row_operands_(parts_.size()),
      made_by_(values_.size(), nodes_.size()),
      last_reader_(values_.size()),
      scratch_(static_cast<size_t>(pool.threads())) {
  for (const plan::Port& p : executable_->plan->inputs) readers_[p.value];
  for (size_t n = 0; n < nodes_.size(); ++n) {
    groups_.push_back({this, n, n + 1});
    const std::vector<plan::Operand>& operands = executable_->nodes[n].node->in;
    for (const int v : executable_->nodes[n].node->out) made_by_[v] = n;
    for (const plan::Operand& o : operands)
      if (o.kind == plan::Operand::value) last_reader_[o.index] = n;
    for (size_t i = 0; i < operands.size(); ++i)
      if (const auto input = readers_.find(operands[i].index);
          operands[i].kind == plan::Operand::value && input != readers_.end())
        input->second.push_back(&nodes_[n].in[i]);
  }
}

Status CpuExecutor::reserve_header(uint64_t bytes) {
  INVAR_TRY(step_header_, Allocation::make(bytes, "positions"));
  return {};
}

Status CpuExecutor::bind_call(size_t n) {
  const PreparedNode& prepared = executable_->nodes[n];
  BoundNode& node = nodes_[n];
  if (prepared.fused_count) {
    node.epilogue = make_epilogue(n);
    node.call.cpu.epilogue = &node.epilogue;
  }
  const ops::CpuKernel& k = *prepared.kernel.cpu;
  for (int phase = 0; phase < k.phases; ++phase)
    node.units[phase] = node.is_view ? 0 : std::max<int64_t>(k.units(node.call, phase), 0);
  if (!k.scratch_bytes) return {};
  const size_t bytes = k.scratch_bytes(node.call);
  for (Allocation& b : scratch_)
    if (b.size() < bytes) {
      INVAR_TRY(b, Allocation::make(bytes, "scratch"));
    }
  return {};
}

// The epilogue that the head's kernel gets for the nodes fused into it.
ops::Epilogue CpuExecutor::make_epilogue(size_t head) const {
  ops::Epilogue epilogue{run_fused, &groups_[head], executable_->nodes[head].in_registers};
  for (size_t n = head + 1; epilogue.add_relu && n < executable_->group_end(head); ++n) {
    const PreparedNode &node = executable_->nodes[n], &before = executable_->nodes[n - 1];
    epilogue.relu |= node.kernel.cpu->in_register == ops::InRegisterEpilogue::relu;
    for (size_t i = 0;
         node.kernel.cpu->in_register == ops::InRegisterEpilogue::add && i < node.node->in.size(); ++i)
      if (node.node->in[i].index != before.node->out[0]) epilogue.other = &nodes_[n].in[i];
  }
  return epilogue;
}

// The nodes that the head's kernel runs on rows: as many of those that may as take these shapes.
// The nodes behind them are run on what the last of them leaves.
void CpuExecutor::append_steps(size_t head) {
  const Executable& e = *executable_;
  BoundNode& node = nodes_[head];
  node.steps.resize(e.nodes[head].on_rows);
  int count = 0;
  size_t n = head + 1;
  for (; n <= head + e.nodes[head].on_rows; ++n) {
    const std::vector<plan::Operand>& operands = e.nodes[n].node->in;
    const plan::Operand result{plan::Operand::value, e.nodes[n - 1].node->out[0]};
    const auto operand = static_cast<int>(std::ranges::find(operands, result) - operands.begin());
    const int more =
        e.nodes[n].kernel.cpu->append_row_step(nodes_[n].call, operand, node.steps.data(), count);
    if (more == 0) break;
    count = more;
  }
  groups_[head].first = n;
  if (count) node.epilogue.steps = node.steps.data(), node.epilogue.step_count = count;
}

void CpuExecutor::run_fused(const void* context, const ops::Region& region) {
  const auto& [executor, head, first] = *static_cast<const FusedGroup*>(context);
  const Executable& e = *executor->executable_;
  for (size_t n = first; n < e.group_end(head); ++n)
    e.nodes[n].kernel.cpu->region(executor->nodes_[n].call, region);
}

// The end of the concurrent run that begins at `first`. Nodes with memory between phases run alone,
// since each would need memory of its own; so do those of parts with other rows.
size_t CpuExecutor::concurrent_end(size_t first) const {
  const Executable& e = *executable_;
  size_t end = e.group_end(first);
  while (end < nodes_.size() && e.nodes[end].concurrent && !nodes_[first].shared_bytes &&
         !nodes_[end].shared_bytes && rows_of_part_[end] == rows_of_part_[first])
    end = e.group_end(end);
  return end;
}

Status CpuExecutor::schedule(bool reshape) {
  const Executable& e = *executable_;
  for (size_t n = 0; reshape && n < nodes_.size(); ++n)
    if (e.nodes[n].on_rows) append_steps(n);
  if (reshape) {
    INVAR_CHECK_OK(find_rows_of_parts());
  }
  waves_.clear();
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = concurrent_end(n);
    if (nodes_[n].is_view && end == n + 1) continue;
    int64_t bytes = 0;
    bool has_indices = false, has_parts = false;
    for (size_t m = n; m < end; ++m) {
      bytes += nodes_[m].bytes_touched, has_parts |= parts_[m].by >= 0;
      has_indices |= e.nodes[m].contract->find_out_of_bounds != nullptr;
    }
    waves_.push_back({n, end, workers_for(bytes, pool_.threads()), has_indices, has_parts});
  }
  return {};
}

Status CpuExecutor::run(bool tail, const std::function<void()>&) {
  const Executable& e = *executable_;
  int part = -1;  // whose rows are bound
  for (const Wave& wave : waves_) {
    const PreparedNode& first = e.nodes[wave.begin];
    if (first.is_constant ? has_constants_ : !tail && !first.feeds_state) continue;
    if (const int next = rows_of_part_[wave.begin]; next != part) {
      if (part >= 0) end_part(part);
      if (next >= 0) begin_part(next);
      part = next;
    }
    for (size_t n = wave.begin; wave.has_indices && n < wave.end; ++n) {
      const ops::OpContract& contract = *e.nodes[n].contract;
      if (ops::OutOfBounds out_of_bounds;
          contract.find_out_of_bounds && contract.find_out_of_bounds(nodes_[n].call, out_of_bounds))
        return out_of_bounds_error(n, out_of_bounds);
    }
    if (wave.has_parts) find_unread(wave);
    if (first.join >= 0) {
      INVAR_CHECK_OK(run_join(wave));
    } else {
      run_in_turn(wave);
    }
    for (size_t n = wave.begin; observe_ && n < wave.end; ++n) observe_({n, step_shape_.past, nodes_[n].out});
  }
  has_constants_ = true;
  return check_libraries();
}

// Who observes sees what every node makes.
void CpuExecutor::find_unread(const Wave& wave) {
  for (size_t n = wave.begin; n < wave.end; n = executable_->group_end(n))
    unread_[n] = !observe_ && parts_[n].by >= 0 && parts_[n].behind <= wave.begin &&
                 !is_read(parts_[n], values_[parts_[n].by]);
}

void CpuExecutor::run_in_turn(const Wave& wave) {
  std::unique_lock<std::mutex> turn;
  if (turn_) turn = std::unique_lock(*turn_);
  run_wave(wave);
}

// Reads the parts where the other ranks have made them, which are there from one meeting to the
// next.
Status CpuExecutor::run_join(const Wave& wave) {
  const PreparedNode& prepared = executable_->nodes[wave.begin];
  const std::vector<int>& makers = executable_->joins[static_cast<size_t>(prepared.join)].makers;
  BoundNode& node = nodes_[wave.begin];
  for (size_t i = 0; i < makers.size(); ++i)
    if (makers[i] == rank_) joins_->parts[static_cast<size_t>(rank_)] = node.in[i].data;
  INVAR_CHECK_OK(joins_->meet());
  for (size_t i = 0; i < makers.size(); ++i)
    if (makers[i] != rank_)
      node.in[i].data = const_cast<void*>(joins_->parts[static_cast<size_t>(makers[i])]);
  run_in_turn(wave);
  return joins_->meet();
}

// The nodes of a wave, except those that are fused into others, have one kernel. In each phase
// their work units form one range, which the pool splits.
void CpuExecutor::run_wave(const Wave& wave) {
  const size_t begin = wave.begin, end = wave.end;
  num::mend_arithmetic_env();
  const Executable& e = *executable_;
  const ops::CpuKernel& kernel = *e.nodes[begin].kernel.cpu;
  if (wave.workers == 1) {
    for (int phase = 0; phase < kernel.phases; ++phase)
      for (size_t n = begin; n < end; n = e.group_end(n))
        if (const int64_t units = units_of(n, phase))
          kernel.run(nodes_[n].call, phase, 0, units, scratch_[0].data());
    return;
  }
  for (int phase = 0; phase < kernel.phases; ++phase) {
    int64_t units = 0;
    for (size_t n = begin; n < end; n = e.group_end(n)) units += units_of(n, phase);
    if (units == 0) continue;
    struct {
      const CpuExecutor& executor;
      const ops::CpuKernel& kernel;
      size_t begin, end;
      int phase;
    } job{*this, kernel, begin, end, phase};
    auto work = [&job](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept in functions that a library can replace
      int64_t first = 0;           // the node's first unit in the range
      for (size_t n = job.begin; n < job.end && first < to; n = job.executor.executable_->group_end(n)) {
        const int64_t count = job.executor.units_of(n, job.phase);
        const int64_t a = std::max(from - first, int64_t{0}), b = std::min(to - first, count);
        if (a < b)
          job.kernel.run(job.executor.nodes_[n].call, job.phase, a, b, job.executor.scratch_[worker].data());
        first += count;
      }
    };
    if (units == 1)
      work(0, 0, units);
    else
      pool_.run(units, work, wave.workers);
  }
}

Status CpuExecutor::feed(int v, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  ops::View& view = values_[v];
  const bool in_place = reinterpret_cast<uintptr_t>(bytes.data()) % size_of(view.dtype) == 0;
  std::byte* const own = arena_->data() + buffer_offset_[executable_->values[v].buffer];
  if (!in_place) std::memcpy(own, bytes.data(), bytes.size());
  void* const at =
      in_place ? const_cast<std::byte*>(bytes.data()) : own;  // kernels do not write their inputs
  if (view.data == at) return {};
  view.data = at;
  for (ops::View* operand : readers_.at(v)) operand->data = at;
  return {};
}

Status CpuExecutor::feed_device(int, const void*) {
  return Error{Code::internal, "an input in device memory for the host's executor"};
}

size_t CpuExecutor::bytes() const {
  size_t bytes = Executor::bytes() + gathered_.size();
  for (const Allocation& b : scratch_) bytes += b.size();
  return bytes;
}

}  // namespace invar::run
