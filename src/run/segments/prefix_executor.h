// Runs a decoder with data-dependent sizes (plan.15) or control flow (plan.16) for a session. Any
// token may decide what such a program runs, so the logits of a position are computed over the
// sequence up to it, from its start (plan.10).
#pragma once

#include "run/segments/block_executor.h"

namespace invar::run {

class PrefixExecutor {
 public:
  // Values of the plan; positions -1: it takes none.
  struct PortValues {
    int ids, positions, logits;
  };
  // The plan and the context must outlive the executor.
  static Result<std::unique_ptr<PrefixExecutor>> open(const plan::Plan&, const PortValues&,
                                                      ExecutionContext&);

  // The logits of the last of these tokens of a sequence; valid until the next call.
  Result<std::span<const float>> run(std::span<const int32_t> tokens);

  BlockExecutor& block() { return *block_; }
  size_t bytes() const { return block_->bytes() + row_.capacity() * sizeof(float); }

 private:
  PrefixExecutor(const plan::Plan& plan, const PortValues& ports, const ExecutionContext& context)
      : plan_(plan), ports_(ports), context_(context) {}
  void set_input(int v, std::vector<int64_t>& elements);

  const plan::Plan& plan_;
  const PortValues ports_;
  const ExecutionContext& context_;
  std::unique_ptr<BlockExecutor> block_;
  std::vector<int64_t> ids_, positions_;
  std::vector<float> row_;  // logits that a GPU left in its memory
};

}  // namespace invar::run
