// A stage in this process: an executor with its weights, which stay in memory or, with too little
// of it, are loaded for every pass.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <optional>

#include "run/execute/encoded_sources.h"
#include "run/execute/executor.h"
#include "run/partitions/stage.h"
#include "run/prepare/fixed_states.h"
#include "run/prepare/prepare.h"
#include "run/weights/upload_queues.h"

namespace invar::run {

// The part that all stages of a process share. It outlives them.
struct StageContext {
  std::string folder;
  Pool* pool = nullptr;
  Options options;
  EncodedSources* sources = nullptr;  // of a program with an encoder
  // The arguments of reserve(), as far as load() can know them; 0: nothing is known.
  int64_t rows = 0, tail_rows = 0;
};

// The executable of a stage, with the numbers that its plan has in the whole one.
Result<std::shared_ptr<const Executable>> prepare_stage(const plan::Stage&, const Target&,
                                                        const PassObserver& = {});

class LocalStage final : public Stage {
 public:
  static Result<std::unique_ptr<LocalStage>> prepare(plan::Stage stage, const DecoderPorts& ports,
                                                     std::shared_ptr<Device> device,
                                                     const StageContext& context);
  ~LocalStage() override;

  const std::string& lane() const override { return lane_; }
  std::shared_ptr<Device> device() const override { return device_; }
  bool has_memory() const override { return has_memory_; }
  bool has_fixed_states() const override { return run::has_fixed_states(*executable_); }
  bool has_leading_sequences(int v) const override {
    return own(v) < 0 || executable_->batch_of(own(v)) == Executable::Batch::leading;
  }
  std::vector<std::string> kernels() const override { return executable_->kernels(); }
  std::vector<std::string> libraries() const override { return executable_->libraries(); }

  // The memory that the weights take.
  Result<uint64_t> weight_bytes() const;
  // Shares with the other stages of the device: the memory of activations, since one of them runs
  // at a time, and the queues to the device.
  void share(std::shared_ptr<Allocation> arena, std::shared_ptr<UploadQueues> queues) {
    arena_ = std::move(arena), queues_ = std::move(queues);
  }
  // The part that the streamed stages of a lane share.
  struct Streaming {
    std::mutex loading;
    std::unique_ptr<Pool> pool;         // of a GPU's lane: loads a stage, mostly while another runs
    const LocalStage* ahead = nullptr;  // the one stage that is loaded before it runs
  };
  // Makes load() only check the weights, and run() load them. `next`: the stage whose weights are
  // loaded while this one runs; null: none.
  void stream(LocalStage* next, std::shared_ptr<Streaming>);
  // Makes a stage that has slices of weights check those of `whole`, which outlives it, before it
  // loads its own; null: it checks none.
  void check_instead(const plan::Plan* whole) { checks_ = whole, checks_own_ = false; }

  // The stage joins with those of the other ranks of its partition within its steps.
  void join_with(std::shared_ptr<RankJoins> joins) { joins_ = std::move(joins); }
  // On the host: it has a lane of its own, whose stages share the threads of the pool by turns.
  void have_lane(const std::string& name, std::shared_ptr<std::mutex> turn) {
    lane_ += " " + name, turn_ = std::move(turn);
  }
  void give_up() override {
    if (joins_) joins_->give_up();
  }
  void restart() override {
    if (joins_) joins_->restart();
  }

  void leave_logits() override { leaves_logits_ = true; }
  Status load() override;
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity) override;
  Status forget(int64_t sequence, int64_t keep) override { return executor_->forget(sequence, keep); }
  bool is_here() const override { return true; }
  void share_pages() override { shares_pages_ = true; }
  StatePages* pages() override { return executor_->pages(); }
  Status begin(const StagePass&) override;
  Status hand_in(int v, const Handover&) override;
  Status run(const std::function<void()>& overlapped) override;
  Status hand_out(int v, Handover&) override;
  Status handed_out() override { return device_ ? device_->wait() : Status(); }
  Status read_output(int v, size_t begin,
                     const std::function<void(std::span<const std::byte>)>& take) override {
    return executor_->read_output(own(v), begin, take);
  }
  std::span<const float> hidden() const override { return hidden_rows_; }
  size_t bytes() const override;
  Status weights_unchanged() override {
    if (checks_own_) return weights_.unchanged(stage_.segment.plan);
    return checks_ ? checked_.unchanged(*checks_) : Status();
  }

 private:
  LocalStage(plan::Stage stage, const DecoderPorts& ports, std::shared_ptr<Device> device,
             const StageContext& context);
  const plan::Plan& plan() const { return stage_.segment.plan; }
  // The number in the stage's plan of a value of the whole plan; -1: it is not there.
  int own(int v) const;
  Result<Weights> loaded(bool check, Pool& pool, const ByteProgress& progress = {},
                         Weights::OnAllocated allocated = {}) const;
  void make_executor();
  Status feed_sources();
  Status execute(const std::function<void()>& overlapped);
  void preload(const Weights&);
  void start_loading();
  Result<Weights> take_weights();

  plan::Stage stage_;
  const StageContext& context_;
  const std::shared_ptr<Device> device_;
  std::string lane_;
  std::map<int, int> own_;  // values of the whole plan -> of the stage's
  int ids_ = -1, positions_ = -1, logits_ = -1, lengths_ = -1, hidden_in_ = -1, hidden_out_ = -1;
  std::vector<float> hidden_rows_;
  bool has_memory_ = true;
  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<Allocation> arena_;     // null: the executor's own
  std::shared_ptr<UploadQueues> queues_;  // while weights are to be loaded; null: of each load
  std::shared_ptr<RankJoins> joins_;      // null: it joins between stages, or has no ranks
  std::shared_ptr<std::mutex> turn_;      // null: nobody else has the pool's threads
  std::unique_ptr<Executor> executor_;
  Weights weights_;  // resident, or of a streamed stage those that were checked
  bool checks_own_ = true, leaves_logits_ = false;
  const plan::Plan* checks_ = nullptr;
  Weights checked_;
  bool tail_ = true, shares_pages_ = false;

  bool streamed_ = false;
  LocalStage* next_ = nullptr;
  std::shared_ptr<Streaming> streaming_;
  std::future<Result<Weights>> prefetched_;
  size_t streamed_bytes_ = 0;
};

}  // namespace invar::run
