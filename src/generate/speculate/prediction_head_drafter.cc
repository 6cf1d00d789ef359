// Drafts by the head for several tokens that a checkpoint ships: from the state that the model made
// the logits of a position from, and the token after it, the head says the one after that. Further
// tokens follow from the head's own states.
#include <algorithm>

#include "generate/engine/execution.h"
#include "generate/speculate/drafter.h"
#include "plan/program_text.h"

namespace invar::generate {
namespace {

int64_t last_size(const plan::Plan& plan, int value) {
  const auto& shape = plan.values[static_cast<size_t>(value)].shape;
  return shape.empty() || shape.back().symbol >= 0 ? -1 : shape.back().value;
}

int logits_of(const plan::Plan& plan) {
  for (const plan::Port& o : plan.outputs)
    if (o.name == "logits") return o.value;
  return -1;
}

// The head's row of a position i has the model's state there and the token i + 1. Its first row is
// that of `base_`: positions before are not needed where they were not computed here.
class PredictionHeadDrafter final : public Drafter {
 public:
  PredictionHeadDrafter(CompiledModel head, int64_t size, run::Session session)
      : head_(std::move(head)), size_(static_cast<size_t>(size)), session_(std::move(session)) {}

  bool reads_hidden() const override { return true; }

  void computed(int64_t first, int64_t positions, std::span<const float> hidden) override {
    const auto wanted = static_cast<size_t>(positions) * size_;
    if (hidden.size() > wanted) hidden = hidden.first(wanted);
    first +=
        (static_cast<int64_t>(wanted) - static_cast<int64_t>(hidden.size())) / static_cast<int64_t>(size_);
    if (first < base_ || first > end()) {
      restart(first);
    } else if (first < base_ + rows_) {
      pending_.clear(), rows_ = session_.reset(0, first - base_);
    } else {
      pending_.resize(static_cast<size_t>(first - base_ - rows_) * size_);
    }
    pending_.insert(pending_.end(), hidden.begin(), hidden.end());
  }

  std::vector<int32_t> propose(const sample::Context& known, const sample::Params& params,
                               int64_t most) override {
    std::vector<int32_t> tokens(known.prompt.begin(), known.prompt.end()), draft;
    tokens.insert(tokens.end(), known.answer.begin(), known.answer.end());
    const auto count = static_cast<int64_t>(tokens.size());
    if (end() != count - 1 || pending_.empty() || !make_room(most)) return draft;
    std::vector<int32_t> answer(known.answer.begin(), known.answer.end());
    std::span<const int32_t> next = std::span(tokens).subspan(static_cast<size_t>(base_ + rows_ + 1));
    std::vector<float> states = std::move(pending_);
    pending_.clear();
    const int64_t rows = rows_ + static_cast<int64_t>(next.size());
    while (static_cast<int64_t>(draft.size()) < most) {
      session_.feed_hidden(states);
      const auto logits = session_.step(next);
      if (!logits) return restart(count - 1), draft;
      const auto token =
          sample::pick(*logits, params, {known.prompt, answer, known.stop_tokens, known.max_new_tokens});
      if (!token) break;
      draft.push_back(*token), answer.push_back(*token);
      if (std::ranges::find(known.stop_tokens, *token) != known.stop_tokens.end()) break;
      next = std::span(draft).last(1);
      const auto last = session_.hidden().last(size_);
      states.assign(last.begin(), last.end());
    }
    rows_ = session_.reset(0, rows);  // the draft's own states are no states of the model
    return draft;
  }

 private:
  int64_t end() const { return base_ + rows_ + static_cast<int64_t>(pending_.size() / size_); }
  void restart(int64_t base) {
    session_.reset();
    pending_.clear(), base_ = base, rows_ = 0;
  }
  // A larger memory begins with the rows that wait.
  bool make_room(int64_t most) {
    const int64_t needed = end() - base_ + most;
    if (needed <= session_.capacity()) return true;
    base_ += rows_, rows_ = 0;
    return static_cast<bool>(session_.resize(std::max(2 * session_.capacity(), needed)));
  }

  const CompiledModel head_;  // its folder has the weights
  const size_t size_;
  run::Session session_;
  int64_t base_ = 0, rows_ = 0;
  std::vector<float> pending_;  // states of positions that the head has not seen
};

}  // namespace

// From the logits back to the last value with rows of another size. A profile may round it.
int hidden_value(const plan::Plan& plan) {
  const int logits = logits_of(plan);
  if (logits < 0) return -1;
  int v = logits;
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    if (std::ranges::find(node->out, v) == node->out.end()) continue;
    const auto from = std::ranges::find(node->in, plan::Operand::value, &plan::Operand::kind);
    if (from == node->in.end()) return -1;
    v = from->index;
    const plan::Value& value = plan.values[static_cast<size_t>(v)];
    if (value.dtype == DType::f32 && last_size(plan, v) != last_size(plan, logits)) return v;
  }
  return -1;
}

Result<std::unique_ptr<Drafter>> prediction_head_drafter(const Model& target, int64_t positions,
                                                         const ExecutionOptions& execution,
                                                         Observer& observer) {
  const std::string mtp = "--speculate mtp: ";
  if (execution.partitions > 1 || execution.tensor_parallel > 1 || execution.weights_memory ||
      execution.device.find(',') != std::string::npos || execution.no_kv_cache)
    return not_covered(
        mtp +
        "the head needs the states of a decoder in one part with a memory of keys: leave it or "
        "--n-partitions, --tensor-parallel, --weights-memory, --no-kv-cache out");
  const plan::Plan& plan = target.compiled.plan;
  auto made = prepare_prediction_head(target.location, plan::profile_of(plan.choices), observer);
  if (!made) return made.error().around(mtp);
  CompiledModel head = *std::move(made);
  const int hidden = hidden_value(plan);
  const int64_t size = hidden < 0 ? -1 : last_size(plan, hidden);
  run::Options options = run_options(execution);
  options.capacity = std::max<int64_t>(positions, 64);
  options.hidden = hidden_value(head.plan);
  options.hashed = head.hashed.get();
  const auto takes = std::ranges::find(head.plan.inputs, "hidden_states", &plan::Port::name);
  if (size < 1 || options.hidden < 0 || last_size(head.plan, options.hidden) != size ||
      takes == head.plan.inputs.end() || last_size(head.plan, takes->value) != size)
    return not_covered(mtp + "the states of the model have another size than those of the head");
  auto session = run::Session::open(head.plan, head.folder, options);
  if (!session) return session.error().around(mtp);
  return std::unique_ptr<Drafter>(new PredictionHeadDrafter(std::move(head), size, *std::move(session)));
}

}  // namespace invar::generate
