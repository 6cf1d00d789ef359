// Runs a decoder with data-dependent sizes (plan.15) or control flow (plan.16), or one that takes a
// mask or past keys and values (plan.19), for a session. Any token may decide what such a program
// runs, so the logits of a position are computed over the sequence up to it, from its start
// (plan.10).
#pragma once

#include "run/segments/block_executor.h"
#include "run/segments/decoder_inputs.h"

namespace invar::run {

class PrefixExecutor {
 public:
  // `logits`: a value of the plan. The plan and the context must outlive the executor.
  static Result<std::unique_ptr<PrefixExecutor>> open(const plan::Plan&, std::vector<DecoderInput> inputs,
                                                      int logits, ExecutionContext&);

  // The logits of the last of these tokens of a sequence; valid until the next call.
  Result<std::span<const float>> run(std::span<const int32_t> tokens);

  BlockExecutor& block() { return *block_; }
  size_t bytes() const { return block_->bytes() + row_.capacity() * sizeof(float); }

 private:
  PrefixExecutor(const plan::Plan& plan, std::vector<DecoderInput> inputs, int logits,
                 const ExecutionContext& context)
      : plan_(plan), logits_(logits), context_(context) {
    for (const DecoderInput& i : inputs) inputs_.push_back({i, {}});
  }
  struct Fed : DecoderInput {
    std::vector<int64_t> words;  // the elements, i64 or, two in a word, i32
  };
  void feed(Fed&, std::span<const int32_t> tokens, std::vector<int64_t>& sizes);
  int64_t joined_size(int value, size_t axis) const;

  const plan::Plan& plan_;
  std::vector<Fed> inputs_;
  const int logits_;
  const ExecutionContext& context_;
  std::unique_ptr<BlockExecutor> block_;
  std::vector<float> row_;  // logits that a GPU left in its memory
};

}  // namespace invar::run
