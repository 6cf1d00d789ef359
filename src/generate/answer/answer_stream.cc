// One answer, a piece of its text at a time.
#include <algorithm>
#include <utility>

#include "generate/answer/generator.h"
#include "num/env.h"

namespace invar::generate {

struct AnswerStream::Impl {
  Impl(Generator::Impl& g, Job& j)
      : generator(g), job(j), text(g.model.tokenizer), loop(*g.session, g.task(j), take_held(g, j)) {}
  ~Impl() {  // the last token of an answer was never fed
    const auto& made = loop.generation().tokens;
    generator.held = job.tokens;
    generator.held.insert(generator.held.end(), made.begin(), made.end());
    generator.held.resize(
        std::min(generator.held.size(), static_cast<size_t>(generator.session->position())));
  }
  // How many tokens of the prompt need no computation. A position of a reproducible program has the
  // same bits however positions are grouped into steps (receipt.16); other programs begin anew.
  static size_t take_held(Generator::Impl& g, const Job& j) {
    const std::vector<int32_t> held = std::exchange(g.held, {});
    if (g.request.conversation == 0 || g.compiled.plan.operation_set != OperationSet::reproducible) return 0;
    const size_t most = std::min(held.size(), j.tokens.size() - 1);
    return static_cast<size_t>(
        std::mismatch(held.begin(), held.begin() + static_cast<int64_t>(most), j.tokens.begin()).first -
        held.begin());
  }
  Generator::Impl& generator;
  Job& job;
  prompt::Stream text;
  GenerationLoop loop;
  bool complete = false;
};

AnswerStream Generator::stream(size_t prompt) {
  return AnswerStream(std::make_unique<AnswerStream::Impl>(*impl_, impl_->jobs.at(prompt)));
}

AnswerStream::AnswerStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream::~AnswerStream() = default;

Result<std::optional<std::string>> AnswerStream::next() {
  const num::ArithmeticEnv env;
  if (impl_->complete) return std::optional<std::string>();
  INVAR_TRY(const std::optional<int32_t> token, impl_->loop.next());
  if (token) return std::optional(impl_->text.push(*token));
  impl_->complete = true;
  return std::optional(impl_->text.finish());
}

Result<Answer> AnswerStream::finish(Observer& observer) {
  if (!impl_->complete) return Error{Code::internal, "an answer was sealed before its end"};
  return impl_->generator.seal(impl_->job, impl_->loop.generation(), observer);
}

}  // namespace invar::generate
