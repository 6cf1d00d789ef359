// A stage of a decoder: some of its layers, with their weights and states, on one device. A
// pipeline (pipeline_executor.h) hands activations from stage to stage.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/memory.h"
#include "kernels/op_contract.h"
#include "plan/plan.h"
#include "plan/stages.h"
#include "run/execute/state_pages.h"
#include "run/prepare/executable.h"

namespace invar::run {

// One pass through the program: as many tokens of each of some sequences.
struct StagePass {
  std::span<const int32_t> tokens;           // sequence after sequence
  std::span<const ops::Sequence> sequences;  // with their positions before the pass
  bool tail = true;                          // false: only what feeds a state runs
  size_t unwanted = 0;                       // bytes of logits, of its first rows, that nobody takes
  std::span<const float> hidden = {};        // the input hidden_states, where the program has it
  // Where the logits go, on the host; null: to memory of the pipeline. Several lanes honour it.
  std::byte* logits = nullptr;
  int64_t rows() const { return static_cast<int64_t>(tokens.size() / sequences.size()); }
};

// The values of the whole plan that a session feeds and takes; -1: there is none.
struct DecoderPorts {
  int ids = -1, positions = -1, logits = -1, hidden = -1, lengths = -1;
};

// The memory through which one stage hands a value to another, for one pass.
struct Handover {
  Allocation memory;
  size_t bytes = 0;
  std::shared_ptr<Device> device;  // that it lies on; null: the host
  std::byte* elsewhere = nullptr;  // where it lies in the place of `memory`; null: there
  std::byte* data() const { return elsewhere ? elsewhere : memory.data(); }
};

class Stage {
 public:
  virtual ~Stage() = default;
  // The place where it computes, e.g. "cpu", "cuda:1". Stages of one lane run one after another.
  virtual const std::string& lane() const = 0;
  // The device whose memory it can read inputs from; null: the host's alone.
  virtual std::shared_ptr<Device> device() const = 0;

  // The results of its preparation, known from the start.
  virtual bool has_memory() const = 0;
  // Whether it remembers in states of fixed size, too (prepare/fixed_states.h).
  virtual bool has_fixed_states() const = 0;
  // Whether an input of the decoder, if the stage reads it, has sequences on its leading axis
  // alone.
  virtual bool has_leading_sequences(int v) const = 0;
  virtual std::vector<std::string> kernels() const = 0;
  virtual std::vector<std::string> libraries() const = 0;

  // Loads and checks the weights. Stages elsewhere do so from start_load() on.
  virtual Status start_load() { return {}; }
  virtual Status load() = 0;
  // capacity: positions of each sequence; more than before forgets all of them.
  virtual Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity) = 0;
  // Forgets a sequence but for its first `keep` positions, as Executor::forget does.
  virtual Status forget(int64_t sequence, int64_t keep) = 0;
  virtual bool is_here() const { return false; }  // in this process
  // Before load(): somebody makes room in its pages, which are then taken when they are needed.
  virtual void share_pages() {}
  // The pages of its keys and values; null: it has none, or they are elsewhere.
  virtual StatePages* pages() { return nullptr; }
  // Values are those of the whole plan. hand_in() is called before run(), hand_out() after it; what
  // it has handed out has arrived when handed_out() returns.
  // `overlapped`: as for Executor::run.
  virtual Status begin(const StagePass&) = 0;
  virtual Status hand_in(int v, const Handover&) = 0;
  virtual Status run(const std::function<void()>& overlapped) = 0;
  // A pass through it failed: whatever waits for it ends. Before the next call of Pipeline::run it
  // starts again.
  virtual void give_up() {}
  virtual void restart() {}
  virtual Status hand_out(int v, Handover&) = 0;
  virtual Status handed_out() { return {}; }
  // Before load(): its logits are handed out, and read_output() is not called for them.
  virtual void leave_logits() {}
  // An output on the host from byte `begin` on, in one or more pieces of whole rows. A piece is
  // valid until `take` returns, the last one until the next run.
  virtual Status read_output(int v, size_t begin,
                             const std::function<void(std::span<const std::byte>)>& take) = 0;

  // The rows of Options::hidden of the last run, until the next one.
  virtual std::span<const float> hidden() const { return {}; }

  virtual size_t bytes() const = 0;
  virtual Status weights_unchanged() = 0;
};

}  // namespace invar::run
