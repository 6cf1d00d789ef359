// Steps of a decoder that remembers keys and values, split into passes through the pipeline of its
// stages.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/execute/snapshot_positions.h"
#include "run/partitions/local_stage.h"
#include "run/partitions/pipeline_executor.h"
#include "run/steppers/stepper.h"

namespace invar::run {

class MemoryStepper : public Stepper {
 public:
  MemoryStepper(SessionState& state, std::unique_ptr<StageContext> context,
                std::unique_ptr<Pipeline> pipeline)
      : state_(state), stage_context_(std::move(context)), pipeline_(std::move(pipeline)) {}
  ~MemoryStepper() override { pipeline_->abandon(); }
  // Whether every stage remembers what it needs.
  static bool remembers(const Pipeline&);

  bool has_memory() const override { return true; }
  bool has_leading_sequences(int value) const override;
  Status load() override;
  Status resize() override;
  int64_t chunk() const override { return chunk_; }
  Status step_rows(const NewTokens&, int64_t wanted, const TakeRows&) override;
  Status append_many(std::span<const NewTokens>) override;
  Result<std::span<const float>> step_many(std::span<const NextToken>) override;
  size_t groups(size_t sequences) const override;
  Status start_many(std::span<const NextToken>) override;
  Result<std::span<const float>> take_many() override;
  int64_t forget(int64_t sequence, int64_t keep) override;
  SharedPages* pages() override { return pages_ ? &*pages_ : nullptr; }
  std::vector<std::string> kernels() const override;
  std::vector<std::string> libraries() const override;
  size_t bytes() const override;
  Status weights_unchanged() override;

 protected:
  // The logits of the last `wanted` of these tokens of a sequence, which begin at position `past`.
  // `take` counts from the last `count` tokens on.
  Status step_from(std::span<const int32_t> tokens, int64_t sequence, int64_t past, int64_t count,
                   int64_t wanted, const TakeRows& take);

  SessionState& state_;

 private:
  const Options& options() const { return state_.options(); }
  bool in_flight() const { return pipeline_->in_flight() > 0; }
  Status run(std::span<const StagePass> through, const Pipeline::Take& take);
  void keep_hidden(std::span<const float> rows, int64_t count);
  Status check_states(std::span<const StagePass> through);
  void move_states(std::span<const StagePass> through, bool good);
  int64_t most_rows() const;
  void size_passes();
  Status reserve();
  Status find_pages();
  Status take_pages(std::span<const StagePass> through);
  void rest_unless_shared();
  Result<Allocation> make_logits(size_t rows) const;
  Status reserve(int64_t rows, int64_t tail_rows) {
    return pipeline_->reserve(rows, tail_rows, options().capacity);
  }
  void reserve_tails(int64_t rows);
  int64_t most_tail_rows() const;
  int64_t in_one_pass() const;
  int64_t rows_with_tail(int64_t size, int64_t wanted) const;

  const std::unique_ptr<StageContext> stage_context_;  // that stages refer to
  const std::unique_ptr<Pipeline> pipeline_;
  const bool stages_remember_ = remembers(*pipeline_);
  const bool has_fixed_states_ =
      std::ranges::any_of(pipeline_->stages(), [](const auto& stage) { return stage->has_fixed_states(); });
  // A state of fixed size is that of the last position alone, and a worker's pages are its own.
  const bool shares_pages_ =
      !has_fixed_states_ &&
      std::ranges::all_of(pipeline_->stages(), [](const auto& stage) { return stage->is_here(); });
  // Per sequence, where its states of fixed size are, if there are any.
  std::vector<SnapshotPositions> snapshots_ =
      std::vector<SnapshotPositions>(static_cast<size_t>(has_fixed_states_ ? options().sequences : 0),
                                     SnapshotPositions(options().goes_back&& options().sequences == 1));
  std::optional<SharedPages> pages_;  // of all stages; none: they are not all here, or have fixed states
  int64_t chunk_ = 0, tail_rows_ = 0;
  bool tails_fit_ = true;             // there was memory for more of them
  int64_t pass_rows_ = 0;             // of a pass of several sequences
  std::vector<ops::Sequence> batch_;  // of step_many()
  std::vector<int32_t> batch_tokens_;
  Allocation batch_logits_[2];  // of several passes: of this step and of the one before
  size_t batch_turn_ = 0;
  // A step that start_many() began. One more than are in flight: that which was taken last.
  struct Flight {
    std::vector<ops::Sequence> sequences;
    std::vector<int32_t> tokens;
    Allocation logits;
    StagePass pass;
  };
  std::vector<Flight> flights_ = std::vector<Flight>(pipeline_->groups() + 1);
  size_t taken_ = 0;  // the first one in flight is flights_[taken_ % flights_.size()]
  Flight& flight(size_t number) { return flights_[(taken_ + number) % flights_.size()]; }
  std::vector<ops::Sequence> pass_sequences_;  // of step_from()
  std::vector<StagePass> passes_;
};

}  // namespace invar::run
