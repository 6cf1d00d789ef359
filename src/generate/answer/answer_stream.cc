// One answer, a piece of its text at a time.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "generate/answer/generator.h"
#include "num/env.h"

namespace invar::generate {

struct AnswerStream::Impl {
  Impl(Generator::Impl& g, Job& j, Observer& o)
      : generator(g),
        job(j),
        observer(o),
        text(g.model.tokenizer),
        loop(*g.session, g.task(j), take_held(g, j)) {}
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
  Result<std::optional<int32_t>> next_token();
  void report_decoding();

  Generator::Impl& generator;
  Job& job;
  Observer& observer;
  prompt::Stream text;
  GenerationLoop loop;
  std::unique_ptr<Phase> decoding;  // from the first token on
  bool complete = false;
};

// The first step computes the prompt.
Result<std::optional<int32_t>> AnswerStream::Impl::next_token() {
  if (!loop.generation().tokens.empty() || job.max_new_tokens < 1) return loop.next();
  const auto total = static_cast<int64_t>(job.tokens.size());
  const auto prefill = observer.phase("prefill");
  generator.prefilling = prefill.get();
  auto token = loop.next();
  generator.prefilling = nullptr;
  if (!token) return token;
  prefill->progress(total, total, "tokens");
  prefill->done(std::to_string(total) + " tokens");
  decoding = observer.phase("decode");
  return token;
}

void AnswerStream::Impl::report_decoding() {
  if (!decoding) return;
  const Generation& made = loop.generation();
  decoding->progress(static_cast<int64_t>(made.tokens.size()), job.max_new_tokens, "tokens");
  if (!complete) return;
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.1f", made.decode_tokens_per_second);
  decoding->done(std::to_string(made.tokens.size()) + " tokens, " + rate + " tokens/s");
  decoding.reset();
}

AnswerStream Generator::stream(size_t prompt, Observer& observer) {
  return AnswerStream(std::make_unique<AnswerStream::Impl>(*impl_, impl_->jobs.at(prompt), observer));
}

AnswerStream::AnswerStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream::~AnswerStream() = default;

Result<std::optional<std::string>> AnswerStream::next() {
  const num::ArithmeticEnv env;
  if (impl_->complete) return std::optional<std::string>();
  INVAR_TRY(const std::optional<int32_t> token, impl_->next_token());
  impl_->complete = !token;
  impl_->report_decoding();
  if (token) return std::optional(impl_->text.push(*token));
  return std::optional(impl_->text.finish());
}

Result<Answer> AnswerStream::finish() {
  if (!impl_->complete) return Error{Code::internal, "an answer was sealed before its end"};
  return impl_->generator.seal(impl_->job, impl_->loop.generation(), impl_->observer);
}

}  // namespace invar::generate
