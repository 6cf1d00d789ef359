// One call of one kernel row, ready to be timed as the runtime would make it: constants packed, memory filled; units shared
// out over the pool, or queued on a GPU.
#pragma once
#include <memory>

#include "base/thread_pool.h"
#include "kernels/kernel.h"
#include "run/execute/memory.h"
#include "bench/suite.h"

namespace invar::bench {

class Subject {
 public:
  // The operands' values come from the item's fills; they do not depend on the row.
  // With a device the call's memory lies there, and the row must be one of a GPU.
  static Result<Subject> make(const Item&, const ops::Kernel&, int threads,
                              const std::shared_ptr<Device>& device = {});
  void run(Pool&) const;
  void queue(Stream) const;                           // on a GPU
  int64_t bytes_read() const { return read_; }        // operands and memory, once each
  int64_t bytes_written() const { return written_; }  // results, once
  int64_t working_set() const { return read_ + written_; }

 private:
  Subject() = default;
  Status place(int64_t past, const std::shared_ptr<Device>&);
  const ops::Kernel* kernel_ = nullptr;
  std::unique_ptr<Attrs> attrs_;
  std::vector<run::Block> blocks_, scratch_;
  run::Block shared_;
  std::vector<ops::View> in_, out_;
  run::Block state_, now_;
  ops::Call call_;
  int64_t read_ = 0, written_ = 0;
  int workers_ = 1;
};

// What the room requires of the call, or "" where it takes it. An error: no such operation.
Result<std::string> refusal(const Item&);

}  // namespace invar::bench
