// Steppers that remember a sequence's tokens and compute it anew from its start, and which stepper
// a session takes.
#include <algorithm>

#include "run/partitions/placement.h"
#include "run/segments/prefix_executor.h"
#include "run/steppers/memory_stepper.h"

namespace invar::run {
namespace {

// The tokens of the one sequence.
class TokenHistory {
 public:
  void append(int64_t past, std::span<const int32_t> tokens) {
    tokens_.resize(static_cast<size_t>(past));  // a step that failed may have left tokens
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  void keep(int64_t count) { tokens_.resize(static_cast<size_t>(count)); }
  void reserve(int64_t count) { tokens_.reserve(static_cast<size_t>(count)); }
  std::span<const int32_t> tokens() const { return tokens_; }

 private:
  std::vector<int32_t> tokens_;
};

// Passes through the pipeline, which begin anew in every step.
class RecomputeStepper final : public MemoryStepper {
 public:
  using MemoryStepper::MemoryStepper;
  bool has_memory() const override { return false; }
  Status load() override {
    history_.reserve(state_.options().capacity);
    return MemoryStepper::load();
  }
  Status step_rows(const NewTokens& next, int64_t wanted, const TakeRows& take) override {
    history_.append(state_.position[0], next.tokens);
    return step_from(history_.tokens(), 0, 0, static_cast<int64_t>(next.tokens.size()), wanted, take);
  }
  Status append_many(std::span<const NewTokens> all) override { return Stepper::append_many(all); }
  int64_t forget(int64_t, int64_t keep) override { return history_.keep(keep), keep; }
  SharedPages* pages() override { return nullptr; }

 private:
  TokenHistory history_;
};

// A program that takes the whole sequence runs once for each wanted token, over all up to it.
class PrefixStepper final : public Stepper {
 public:
  explicit PrefixStepper(SessionState& state) : state_(state) {}
  Status load() override {
    history_.reserve(state_.options().capacity);
    INVAR_TRY(prefix_, PrefixExecutor::open(state_.plan, state_.inputs, state_.ports.logits, state_.context));
    return {};
  }
  Status resize() override { return {}; }
  int64_t chunk() const override { return state_.options().capacity; }
  Status step_rows(const NewTokens& next, int64_t wanted, const TakeRows& take) override {
    history_.append(state_.position[0], next.tokens);
    state_.finish_overlapped();  // it may read logits that are computed over now
    const std::span<const int32_t> tokens = history_.tokens();
    const auto first = static_cast<int64_t>(next.tokens.size()) - wanted;
    for (int64_t i = 0; i < wanted; ++i) {
      const size_t length = tokens.size() - static_cast<size_t>(wanted - i) + 1;
      INVAR_TRY(const std::span<const float> row, prefix_->run(tokens.first(length)));
      take(first + i, row);
    }
    return {};
  }
  int64_t forget(int64_t, int64_t keep) override { return history_.keep(keep), keep; }
  std::vector<std::string> kernels() const override {
    return names([](const Executable& e) { return e.kernels(); });
  }
  std::vector<std::string> libraries() const override {
    return names([](const Executable& e) { return e.libraries(); });
  }
  size_t bytes() const override { return prefix_->bytes(); }
  Status weights_unchanged() override { return prefix_->block().weights_unchanged(); }

 private:
  std::vector<std::string> names(std::vector<std::string> (*of)(const Executable&)) const {
    std::vector<std::string> all;
    prefix_->block().add_names(of, all);
    return all;
  }

  SessionState& state_;
  std::unique_ptr<PrefixExecutor> prefix_;
  TokenHistory history_;
};

}  // namespace

Result<std::unique_ptr<Stepper>> Stepper::make(SessionState& state) {
  const Options& o = state.options();
  if (state.takes_whole()) {
    if (o.partitions > 1 || o.ranks > 1 || o.weights_memory || o.device.find(',') != o.device.npos)
      return not_covered(
          "a program with control flow, computed sizes, or a mask is computed anew over each prefix, in one "
          "partition: leave partitions, further devices and the weights' memory out");
    INVAR_TRY(state.context.device, Device::named(o.device));
    if (const Device* const d = state.context.device.get())
      state.device_name = "cuda:" + std::to_string(d->info().index) + " " + d->info().name;
    return std::unique_ptr<Stepper>(std::make_unique<PrefixStepper>(state));
  }
  auto context = std::make_unique<StageContext>(
      StageContext{state.context.folder, state.context.pool.get(), o, state.sources.get()});
  INVAR_TRY(PlacedDecoder placed, place(state.plan, state.ports, *context));
  state.context.device = std::move(placed.device);
  state.device_name = std::move(placed.devices), state.placement = std::move(placed.placement);
  const bool remembers = o.use_cache && MemoryStepper::remembers(*placed.pipeline);
  std::unique_ptr<Stepper> made;
  if (remembers)
    made = std::make_unique<MemoryStepper>(state, std::move(context), std::move(placed.pipeline));
  else
    made = std::make_unique<RecomputeStepper>(state, std::move(context), std::move(placed.pipeline));
  return made;
}

}  // namespace invar::run
