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
  explicit Impl(Generator::Impl& g) : generator(g), rows(static_cast<size_t>(g.sequences)) {}
  void begin_prompts();

  Generator::Impl& generator;
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

AnswerBatch Generator::batch() {
  return AnswerBatch(std::make_unique<AnswerBatch::Impl>(*impl_));
}

AnswerBatch::AnswerBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerBatch::AnswerBatch(AnswerBatch&&) noexcept = default;
AnswerBatch::~AnswerBatch() = default;

Result<std::optional<AnswerBatch::Complete>> AnswerBatch::next(Observer& observer) {
  const num::ArithmeticEnv env;
  Generator::Impl& g = impl_->generator;
  for (;;) {
    for (auto& row : impl_->rows) {
      if (!row || !row->loop.complete()) continue;
      g.session->finish_overlapped();
      const std::unique_ptr<Impl::Row> done = std::move(row);
      INVAR_TRY(Answer answer, g.seal(g.jobs[done->prompt], done->loop.generation(), observer));
      return std::optional(Complete{done->prompt, std::move(answer)});
    }
    impl_->begin_prompts();
    std::vector<GenerationLoop*> open;
    for (const auto& row : impl_->rows)
      if (row) open.push_back(&row->loop);
    if (open.empty()) return std::optional<Complete>();
    INVAR_CHECK_OK(GenerationLoop::advance(*g.session, open));
  }
}

}  // namespace invar::generate
