// Drafts by a small model with the same vocabulary.
#include <algorithm>

#include "generate/engine/execution.h"
#include "generate/speculate/drafter.h"

namespace invar::generate {
namespace {

// Bytes of a token that the two tokenizers write differently are of no interest: its text is.
Status check_vocabulary(const Model& target, const Model& draft, const std::string& folder) {
  const ModelFolder &t = target.folder, &d = draft.folder;
  if (t.identity.tokenizer == d.identity.tokenizer) return {};
  const auto refuse = [&](const std::string& why) {
    return not_covered("--speculate " + folder + ": its vocabulary is not that of " + target.location.name +
                       ": " + why + ": give a model with the same tokenizer");
  };
  const int32_t size = t.tokenizer.vocab_size(), other = d.tokenizer.vocab_size();
  if (size != other) return refuse(std::to_string(other) + " tokens, not " + std::to_string(size));
  for (int32_t id = 0; id < size; ++id)
    if (t.tokenizer.decode({&id, 1}, false) != d.tokenizer.decode({&id, 1}, false) ||
        t.tokenizer.is_special(id) != d.tokenizer.is_special(id))
      return refuse("token " + std::to_string(id) + " is another one");
  return {};
}

// Prompt and answer are computed but for what the session holds already, then the draft token by
// token. A draft that fails is none: the answer needs it not.
class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(std::shared_ptr<const Model> model, int64_t vocab, run::Session session)
      : model_(std::move(model)), vocab_(vocab), session_(std::move(session)) {}

  std::vector<int32_t> propose(const sample::Context& known, const sample::Params& params,
                               int64_t most) override {
    std::vector<int32_t> tokens(known.prompt.begin(), known.prompt.end()), draft;
    tokens.insert(tokens.end(), known.answer.begin(), known.answer.end());
    most = std::min(most, model_->folder.context - static_cast<int64_t>(tokens.size()));
    if (most < 1 || !make_room(static_cast<int64_t>(tokens.size()) + most)) return draft;
    const size_t both = std::min(held_.size(), tokens.size() - 1);
    const auto same =
        std::mismatch(held_.begin(), held_.begin() + static_cast<int64_t>(both), tokens.begin());
    const auto kept = static_cast<size_t>(session_.reset(0, same.first - held_.begin()));
    held_ = tokens;
    std::vector<int32_t> answer(known.answer.begin(), known.answer.end());
    std::span<const int32_t> next = std::span(tokens).subspan(kept);
    while (static_cast<int64_t>(draft.size()) < most) {
      const auto logits = session_.step(next);
      if (!logits) return held_.clear(), session_.reset(), draft;
      if (!draft.empty()) held_.push_back(draft.back());
      // The draw of this position, with the settings of the request.
      const auto token =
          sample::pick(*logits, params, {known.prompt, answer, known.stop_tokens, known.max_new_tokens});
      if (!token || *token >= vocab_) break;
      draft.push_back(*token), answer.push_back(*token);
      if (std::ranges::find(known.stop_tokens, *token) != known.stop_tokens.end()) break;
      next = std::span(draft).last(1);
    }
    return draft;
  }

 private:
  bool make_room(int64_t positions) {
    if (positions <= session_.capacity()) return true;
    held_.clear();
    const int64_t more = std::clamp(2 * session_.capacity(), positions, model_->folder.context);
    return session_.resize(more) || session_.resize(positions);
  }

  const std::shared_ptr<const Model> model_;
  const int64_t vocab_;  // of the target: it takes no other ids
  run::Session session_;
  std::vector<int32_t> held_;  // the tokens in its memory
};

}  // namespace

Result<std::unique_ptr<Drafter>> model_drafter(const Model& target, const std::string& folder,
                                               const ExecutionOptions& execution, Observer& observer) {
  ModelOptions where;
  where.model_name = folder, where.offline = target.options.offline;
  where.tasks_root = target.options.tasks_root;
  auto opened = Model::open(where, observer);
  if (!opened) return opened.error().around("--speculate " + folder + ": ", "");
  const std::shared_ptr<Model> draft = *std::move(opened);
  INVAR_CHECK_OK(check_vocabulary(target, *draft, folder));
  INVAR_CHECK_OK(draft->compile(observer));
  run::Options options = run_options(execution);
  options.device = options.device.substr(0, options.device.find(','));
  options.capacity = std::min<int64_t>(draft->folder.context, 256);
  options.hashed = draft->compiled.hashed.get();
  options.goes_back = true;
  INVAR_TRY(run::Session session, run::Session::open(draft->compiled.plan, draft->compiled.folder, options));
  const plan::Plan& plan = target.compiled.plan;
  int64_t vocab = INT32_MAX;
  for (const plan::Port& o : plan.outputs)
    if (const auto& shape = plan.values[o.value].shape; o.name == "logits" && !shape.empty())
      vocab = shape.back().value;
  return std::unique_ptr<Drafter>(new ModelDrafter(draft, vocab, std::move(session)));
}

}  // namespace invar::generate
