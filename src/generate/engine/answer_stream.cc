// One answer, a piece of its text at a time.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "generate/engine/engine_impl.h"
#include "num/env.h"

namespace invar::generate {

struct AnswerStream::Impl {
  Impl(Engine::Impl& e, Request& r, Observer& o)
      : engine(e),
        request(r),
        observer(o),
        text(e.model->folder.tokenizer),
        names(e.pool->names()),
        kept(take_known(e, r, names)),
        loop(*e.session, e.task(r), kept) {
    engine.memory_user = this;
    engine.pool->overwrite(0);
    engine.pool->make_room(engine.pool->missing(0, r.positions()));
  }
  ~Impl() {  // the last token of an answer was never fed
    if (engine.memory_user != this) return;
    const auto& made = loop.generation().tokens;
    std::vector<int32_t>& held = engine.held;
    if (!request.source().empty()) return;
    held = request.tokens;
    held.insert(held.end(), made.begin(), made.end());
    held.resize(std::min(held.size(), static_cast<size_t>(engine.session->position())));
    if (!engine.drafter) engine.pool->keep(0, names, held, 0);
  }
  // How many tokens of the prompt need no computation: those that the answer before has left, or
  // those of full pages of any earlier one. A position of a reproducible program has the same bits
  // however positions are grouped into steps (receipt.16); other programs begin anew.
  static size_t take_known(Engine::Impl& e, const Request& r, PageNames& names) {
    const std::vector<int32_t> held = std::exchange(e.held, {});
    if (!e.is_reproducible() || !r.source().empty()) return 0;
    const std::span<const int32_t> tokens = r.tokens;
    int64_t left = common_prefix(held, tokens.first(tokens.size() - 1));
    if (e.drafter || !e.pool->keeps_pages()) return static_cast<size_t>(left);
    // Full pages are kept, so that nobody writes into them.
    constexpr int64_t page = run::Session::kPagePositions;
    if (left / page < static_cast<int64_t>(held.size()) / page) left -= left % page;
    if (e.pool->kept(names, tokens) <= left) return static_cast<size_t>(left);
    e.session->reset(0);
    return static_cast<size_t>(e.pool->append_kept(0, names, tokens));
  }
  Result<std::optional<int32_t>> next_token();
  void report_decoding();

  Engine::Impl& engine;
  Request& request;
  Observer& observer;
  prompt::Stream text;
  PageNames names;
  const size_t kept;  // tokens of the prompt that are in the memory
  GenerationLoop loop;
  std::unique_ptr<Phase> decoding;  // from the first token on
  bool complete = false;
};

// The first step computes the prompt.
Result<std::optional<int32_t>> AnswerStream::Impl::next_token() {
  if (!loop.generation().tokens.empty() || request.max_new_tokens < 1) return loop.next();
  const auto total =
      static_cast<int64_t>(request.tokens.empty() ? request.continued().size() : request.tokens.size());
  const auto prefill = observer.phase("prefill");
  engine.prefilling = prefill.get();
  auto token = loop.next();
  engine.prefilling = nullptr;
  if (!token) return token;
  prefill->progress(total, total, "tokens");
  prefill->done(std::to_string(total) + " tokens");
  decoding = observer.phase("decode");
  return token;
}

void AnswerStream::Impl::report_decoding() {
  if (!decoding) return;
  const Generation& made = loop.generation();
  decoding->progress(static_cast<int64_t>(made.tokens.size()), request.max_new_tokens, "tokens");
  if (!complete) return;
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.1f", made.decode_tokens_per_second);
  const std::string drafts = engine.drafter ? ", " + describe_drafts(made.drafted, made.accepted) : "";
  decoding->done(std::to_string(made.tokens.size()) + " tokens, " + rate + " tokens/s" + drafts);
  decoding.reset();
}

AnswerStream Engine::stream(Request& request, Observer& observer) {
  return AnswerStream(std::make_unique<AnswerStream::Impl>(*impl_, request, observer));
}

AnswerStream::AnswerStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream::~AnswerStream() = default;

Result<std::optional<std::string>> AnswerStream::next() {
  const num::ArithmeticEnv env;
  if (impl_->complete) return std::optional<std::string>();
  if (impl_->engine.memory_user != impl_.get())
    return Error{Code::internal, "an answer goes on after another has taken its memory"};
  INVAR_TRY(const std::optional<int32_t> token, impl_->next_token());
  impl_->complete = !token;
  impl_->report_decoding();
  if (token) return std::optional(impl_->text.push(*token));
  return std::optional(impl_->text.finish());
}

Result<Answer> AnswerStream::finish() {
  if (!impl_->complete) return Error{Code::internal, "an answer was sealed before its end"};
  INVAR_TRY(Answer answer, impl_->engine.seal(impl_->request, impl_->loop.generation(), impl_->observer));
  answer.cached_tokens = static_cast<int64_t>(impl_->kept);
  return answer;
}

}  // namespace invar::generate
