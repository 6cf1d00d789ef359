// How a session computes the logits of new tokens: with a memory of keys and values
// (memory_stepper.h), anew from the start of the sequence in the same passes, or prefix by prefix
// (both in history_steppers.cc).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/execute/encoded_sources.h"
#include "run/partitions/stage.h"
#include "run/segments/decoder_inputs.h"
#include "run/segments/segment.h"
#include "run/session.h"
#include "run/steppers/shared_pages.h"

namespace invar::run {

// The part that a session shares with its stepper.
struct SessionState {
  plan::Plan plan;
  ExecutionContext context;
  std::vector<DecoderInput> inputs;
  DecoderPorts ports;
  std::unique_ptr<EncodedSources> sources;  // null: the program has no encoder
  int64_t vocab = 0;
  std::string device_name = "cpu", placement;
  std::vector<int64_t> position;  // per sequence: tokens that are computed
  std::vector<float> all_logits;  // rows of several passes that a step returned
  std::vector<float> hidden, fed_hidden;
  std::function<void()> overlapped;  // runs during the next step
  bool taking = false;               // stages may use the pool: in a `take`, or with steps in flight

  const Options& options() const { return context.options; }
  bool takes_whole() const {
    return !plan.bodies.empty() || !plan.bindings.empty() || takes_whole_sequence(inputs);
  }
  void finish_overlapped() {
    if (const auto f = std::exchange(overlapped, nullptr)) f();
  }
};

// Callers have checked tokens, positions and capacity. A stepper does not move positions: the
// session does so where a step succeeds.
class Stepper {
 public:
  using TakeRows = Session::TakeRows;
  // The one for this plan and these options, on its devices. The state outlives it.
  static Result<std::unique_ptr<Stepper>> make(SessionState&);
  virtual ~Stepper() = default;

  // Whether a sequence's positions are computed once; otherwise there is one sequence.
  virtual bool has_memory() const { return false; }
  // Whether an input has sequences on its leading axis alone.
  virtual bool has_leading_sequences(int /*value*/) const { return false; }
  // Loads the weights and takes memory for options().capacity positions of each sequence.
  virtual Status load() = 0;
  // The same again for another capacity, without weights; all sequences are forgotten.
  virtual Status resize() = 0;
  virtual int64_t chunk() const = 0;  // the most tokens of a prompt in a step

  virtual Status step_rows(const NewTokens&, int64_t wanted, const TakeRows&) = 0;
  virtual Status append_many(std::span<const NewTokens> all) {
    return step_rows(all[0], 1, [](int64_t, std::span<const float>) {});
  }
  // Takes at least two tokens, each of another sequence.
  virtual Result<std::span<const float>> step_many(std::span<const NextToken>) {
    return Error{Code::internal, "a step of several sequences without memory"};
  }
  // Session::groups and the steps that are in flight.
  virtual size_t groups(size_t /*sequences*/) const { return 1; }
  virtual Status start_many(std::span<const NextToken>) {
    return Error{Code::internal, "a step in flight without several devices"};
  }
  virtual Result<std::span<const float>> take_many() { return Error{Code::internal, "no step is in flight"}; }
  // Forgets a sequence but for its first `keep` positions, or fewer. Returns how many are left.
  virtual int64_t forget(int64_t sequence, int64_t keep) = 0;

  // The pages of keys and values, where sequences can share them; else null.
  virtual SharedPages* pages() { return nullptr; }

  virtual std::vector<std::string> kernels() const = 0;
  virtual std::vector<std::string> libraries() const = 0;
  virtual size_t bytes() const = 0;
  virtual Status weights_unchanged() = 0;
};

}  // namespace invar::run
