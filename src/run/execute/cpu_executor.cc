// Runs a bound step on the host: wave by wave, and each wave phase by phase over the thread pool.
#include <algorithm>

#include "num/env.h"
#include "run/execute/out_of_bounds.h"
#include "run/prepare/program.h"

namespace invar::run {

Status Program::run(Pool& pool, bool tail, const std::function<void()>& overlapped) {
  return device_ ? run_on_device(tail, overlapped) : run_on_host(pool, tail);
}

Status Program::run_on_host(Pool& pool, bool tail) {
  for (const Wave& wave : waves_) {
    if (!tail && !nodes_[wave.begin].feeds_state) continue;
    for (size_t n = wave.begin; wave.has_indices && n < wave.end; ++n) {
      const ops::OpContract& contract = *nodes_[n].contract;
      if (ops::OutOfBounds out_of_bounds;
          contract.find_out_of_bounds && contract.find_out_of_bounds(nodes_[n].call, out_of_bounds))
        return out_of_bounds_error(nodes_[n], out_of_bounds);
    }
    run_wave(pool, wave);
  }
  return check_libraries();
}

// The nodes of a wave, except those that are fused into others, have one kernel. In each phase
// their work units form one range, which the pool splits.
void Program::run_wave(Pool& pool, const Wave& wave) {
  const auto [begin, end, workers, has_indices] = wave;
  num::mend_arithmetic_env();
  const ops::CpuKernel& kernel = *nodes_[begin].kernel.cpu;
  if (workers == 1) {
    for (int phase = 0; phase < kernel.phases; ++phase)
      for (size_t n = begin; n < end; n = group_end(n))
        if (const PreparedNode& node = nodes_[n]; node.units[phase])
          kernel.run(node.call, phase, 0, node.units[phase], scratch_[0].data());
    return;
  }
  for (int phase = 0; phase < kernel.phases; ++phase) {
    int64_t units = 0;
    for (size_t n = begin; n < end; n = group_end(n)) units += nodes_[n].units[phase];
    if (units == 0) continue;
    struct {
      const Program& program;
      const ops::CpuKernel& kernel;
      size_t begin, end;
      int phase;
    } job{*this, kernel, begin, end, phase};
    auto work = [&job](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept in functions that a library can replace
      int64_t first = 0;           // the node's first unit in the range
      for (size_t n = job.begin; n < job.end && first < to; n = job.program.group_end(n)) {
        const PreparedNode& node = job.program.nodes_[n];
        const int64_t count = node.units[job.phase];
        const int64_t a = std::max(from - first, int64_t{0}), b = std::min(to - first, count);
        if (a < b) job.kernel.run(node.call, job.phase, a, b, job.program.scratch_[worker].data());
        first += count;
      }
    };
    if (units == 1)
      work(0, 0, units);
    else
      pool.run(units, work, workers);
  }
}

Status Program::check_libraries() const {
  if (!uses_libraries_) return {};
  for (const PreparedNode& n : nodes_)
    if (n.library && n.library->failed())
      return Error{Code::internal, std::string(n.library->name) + " " + n.library->version() +
                                       " refused a call, perhaps for want of memory; --operation-set "
                                       "reproducible needs no library"};
  return {};
}

Error Program::out_of_bounds_error(const PreparedNode& node, const ops::OutOfBounds& out_of_bounds) const {
  return bad_input(name_of_node(static_cast<size_t>(&node - nodes_.data())) + ": " +
                   text_of(out_of_bounds, node.in[static_cast<size_t>(out_of_bounds.operand)]));
}

}  // namespace invar::run
