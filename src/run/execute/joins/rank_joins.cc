// Meetings of ranks, see rank_joins.h.
#include "run/execute/joins/rank_joins.h"

#include <chrono>

#include "run/execute/joins/stay_awake.h"

namespace invar::run {

// A wait is many short ones: while the process is stopped, as by Ctrl-Z, none of them ends.
constexpr int kWaits = 120;
constexpr std::chrono::milliseconds kWait{500};

Status RankJoins::meet(Then then) {
  const Error another{Code::failed, "tensor-parallel: another rank of the step failed"};
  std::unique_lock lock(mutex_);
  const uint64_t meeting = meetings_;
  if (failed_) return another;
  if (++present_ == mailboxes.size()) {
    present_ = 0, ++meetings_;
    if (then == Then::started) base_ += joins_;
    if (then == Then::cleared) base_ = 1;
    changed_.notify_all();
    return {};
  }
  const auto ended = [&] { return failed_ || meetings_ != meeting; };
#ifndef __wasi__  // which has one thread, and so no two ranks
  lock.unlock();
  if (on_gpus_) stay_awake(ended);
  lock.lock();
  for (int i = 0; i < kWaits && !ended(); ++i) changed_.wait_for(lock, kWait, ended);
#endif
  if (meetings_ != meeting) return {};
  if (failed_) return another;
  fail(true);
  return Error{Code::failed, "tensor-parallel: a rank waited a minute for another one; start again"};
}

// Kernels that wait see it in the host's memory.
void RankJoins::fail(bool failed) {
  failed_ = failed;
  if (given_up.size()) std::atomic_ref(*reinterpret_cast<uint32_t*>(given_up.data())) = failed;
  changed_.notify_all();
}

void RankJoins::give_up() {
  const std::lock_guard lock(mutex_);
  fail(true);
}

void RankJoins::restart() {
  const std::lock_guard lock(mutex_);
  if (!failed_) return;
  fail(false);
  present_ = 0;
  base_ += joins_;
}

}  // namespace invar::run
