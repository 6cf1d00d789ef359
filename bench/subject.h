// One call of one kernel, ready to be timed as the runtime would make it: constants packed,
// memory filled; units shared out over the pool, or queued on a GPU.
#pragma once
#include <memory>

#include "base/thread_pool.h"
#include "bench/suite.h"
#include "device/memory.h"
#include "kernels/registry.h"

namespace invar::bench {

class Subject {
 public:
  // The operands' values come from the item's fills; they do not depend on the kernel.
  // With a device the call's memory is there, and the kernel must be a GPU's.
  static Result<Subject> make(const Item&, ops::KernelRef, int threads,
                              const std::shared_ptr<Device>& device = {});
  void run(Pool&) const;
  void queue(Stream) const;                           // on a GPU
  int64_t bytes_read() const { return read_; }        // operands and state, once each
  int64_t bytes_written() const { return written_; }  // results, once
  int64_t working_set() const { return read_ + written_; }

 private:
  Subject() = default;
  Status set_past(int64_t past, const std::shared_ptr<Device>&);
  Status fill_past(int64_t past, const std::shared_ptr<Device>&);
  ops::KernelRef kernel_;
  std::unique_ptr<Attributes> attrs_;
  std::vector<Allocation> blocks_, scratch_;
  Allocation shared_;
  std::vector<ops::View> in_, out_;
  Allocation state_, now_;
  ops::Call call_;
  int64_t read_ = 0, written_ = 0;
  int workers_ = 1;
};

// The room's refusal of the call, or "" if it accepts it. An error: no such operation.
Result<std::string> refusal(const Item&);

}  // namespace invar::bench
