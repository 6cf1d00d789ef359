// The ranks of a partition that join within their steps: what they know of each other. Each rank
// has a thread of its own, and all run the same steps in the same order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/memory.h"

namespace invar::run {

class RankJoins {
 public:
  // joins: of a step at most. on_gpus: their steps follow each other in less time than it takes a
  // thread to wake up.
  RankJoins(int ranks, uint32_t joins, bool on_gpus = false)
      : joins_(joins),
        on_gpus_(on_gpus),
        mailboxes(static_cast<size_t>(ranks)),
        part_bytes(mailboxes.size()),
        parts(mailboxes.size()) {}
  int ranks() const { return static_cast<int>(mailboxes.size()); }

  // What has happened when all ranks have met.
  enum class Then : uint8_t {
    nothing,
    started,  // the kernels of a step: the next one has other marks
    cleared,  // the mailboxes: marks begin again
  };
  // Waits until every rank has come here as often as this one. failed: another rank gave up, or did
  // not come within a minute in which this process ran.
  Status meet(Then then = Then::nothing);
  // A step of this rank failed: the waits of the others end.
  void give_up();
  // While no rank is in a step: what failed before is forgotten.
  void restart();

  // The mark of the joins of the next step is this plus their number; to be read between two
  // meetings. Marks are never 0.
  uint32_t base() const { return base_; }
  // Whether few marks are left: the mailboxes are to be cleared.
  bool has_few_marks() const { return base_ > UINT32_MAX / 2; }

 private:
  void fail(bool failed);

  const uint32_t joins_;
  const bool on_gpus_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t base_ = 1;
  std::atomic<uint64_t> meetings_ = 0;
  size_t present_ = 0;
  std::atomic<bool> failed_ = false;

 public:
  // Per rank; each writes its own between two meetings, or while there is no step.
  std::vector<std::byte*> mailboxes;  // on GPUs (kernels/fusion/join_kernels.h)
  std::vector<int64_t> part_bytes;    // that these hold
  std::vector<const void*> parts;     // on the host: of the join that runs
  Allocation given_up;                // on GPUs: a word that is not 0 while failed (ops::GpuJoin)
};

}  // namespace invar::run
