// The answers to many prompts, several computed together.
#include <algorithm>
#include <utility>

#include "generate/answer/generator.h"
#include "num/env.h"

namespace invar::generate {

struct AnswerBatch::Impl {
  struct Row {
    size_t prompt;
    GenerationLoop loop;
  };
  Impl(Generator::Impl& g, Observer& o) : generator(g), observer(o), rows(static_cast<size_t>(g.sequences)) {
    for (const Job& job : g.jobs) total += job.skipped() ? 0 : job.max_new_tokens;
  }
  void begin_prompts();

  Generator::Impl& generator;
  Observer& observer;
  std::unique_ptr<Phase> decoding;         // prompts and answers
  int64_t made = 0, total = 0;             // tokens of answers; the most there can be
  std::vector<std::unique_ptr<Row>> rows;  // by the session's sequence; null: it is free
  size_t next_prompt = 0;
};

// A free sequence takes the next prompt at once, so that later steps are full.
void AnswerBatch::Impl::begin_prompts() {
  Generator::Impl& g = generator;
  for (size_t i = 0; i < rows.size(); ++i) {
    while (next_prompt < g.jobs.size() && g.jobs[next_prompt].skipped()) ++next_prompt;
    if (rows[i] || next_prompt == g.jobs.size()) continue;
    rows[i].reset(
        new Row{next_prompt, {*g.session, g.task(g.jobs[next_prompt]), 0, static_cast<int64_t>(i)}});
    ++next_prompt;
  }
}

AnswerBatch Generator::batch(Observer& observer) {
  return AnswerBatch(std::make_unique<AnswerBatch::Impl>(*impl_, observer));
}

AnswerBatch::AnswerBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerBatch::AnswerBatch(AnswerBatch&&) noexcept = default;
AnswerBatch::~AnswerBatch() = default;

Result<std::optional<AnswerBatch::Complete>> AnswerBatch::next() {
  const num::ArithmeticEnv env;
  Generator::Impl& g = impl_->generator;
  if (!impl_->decoding) impl_->decoding = impl_->observer.phase("decode");
  for (;;) {
    for (auto& row : impl_->rows) {
      if (!row || !row->loop.complete()) continue;
      g.session->finish_overlapped();
      const std::unique_ptr<Impl::Row> done = std::move(row);
      INVAR_TRY(Answer answer, g.seal(g.jobs[done->prompt], done->loop.generation(), impl_->observer));
      return std::optional(Complete{done->prompt, std::move(answer)});
    }
    impl_->begin_prompts();
    std::vector<GenerationLoop*> open;
    for (const auto& row : impl_->rows)
      if (row) open.push_back(&row->loop);
    if (open.empty()) {
      impl_->decoding->done(std::to_string(impl_->made) + " tokens");
      return std::optional<Complete>();
    }
    INVAR_CHECK_OK(GenerationLoop::advance(*g.session, open));
    impl_->made += static_cast<int64_t>(open.size());
    impl_->decoding->progress(impl_->made, impl_->total, "tokens");
  }
}

}  // namespace invar::generate
