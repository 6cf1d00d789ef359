#include "generate/generation_loop.h"

#include <algorithm>
#include <utility>

#include "base/endian.h"
#include "receipt/receipt.h"

namespace invar::generate {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// While a GPU does the next step the host commits to the logits of the last one.
bool on_gpu(const run::Session& session) {
  return session.gpu() != nullptr;
}

}  // namespace

GenerationLoop::GenerationLoop(run::Session& session, std::span<const int32_t> prompt, int64_t max_new,
                               const sample::Params& params, std::span<const int32_t> stop_tokens,
                               std::optional<StopStrings> stop_strings, size_t kept)
    : session_(session),
      prompt_(prompt),
      unfed_(prompt.subspan(kept)),
      stop_tokens_(stop_tokens),
      max_new_(max_new),
      params_(params),
      stop_strings_(std::move(stop_strings)) {
  session_.reset(0, static_cast<int64_t>(kept));
  start_ = Clock::now();
}

// A commitment that is still to be made writes into generation_.
GenerationLoop::~GenerationLoop() {
  session_.finish_overlapped();
}

Result<std::optional<int32_t>> GenerationLoop::next() {
  Generation& g = generation_;
  const size_t i = g.tokens.size();
  if (!g.finish_reason.empty() || static_cast<int64_t>(i) >= max_new_) {
    if (g.finish_reason.empty()) g.finish_reason = "length";
    session_.finish_overlapped();
    return std::optional<int32_t>();
  }
  INVAR_TRY(std::span<const float> logits, session_.step(i == 0 ? unfed_ : std::span(g.tokens).last(1)));
  std::optional<Result<int32_t>> picked;
  g.logits.emplace_back();
  auto commit = [logits, to = &g.logits.back()](int) { *to = receipt::commit(logits); };
  const bool beside = on_gpu(session_);
  session_.parallel_for(beside ? 1 : 2, [&](int task) {
    if (task == 0)
      picked = sample::pick(logits, params_, {prompt_, g.tokens, stop_tokens_, max_new_});
    else
      commit(task);
  });
  INVAR_TRY(const int32_t token, *std::move(picked));
  if (beside) session_.parallel_for_overlapped(1, commit);
  g.tokens.push_back(token);
  if (i == 0)
    g.prefill_seconds = since(start_), first_ = Clock::now();
  else if (const double s = since(first_); s > 0)
    g.decode_tokens_per_second = static_cast<double>(i) / s;
  const bool ends = stop_strings_ && stop_strings_->ends(token);
  if (ends || std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end())
    g.finish_reason = "stop";
  return std::optional(token);
}

Result<Generation> generate(run::Session& session, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params& params, std::span<const int32_t> stop_tokens) {
  GenerationLoop loop(session, prompt, max_new, params, stop_tokens);
  for (;;) {
    INVAR_TRY(const std::optional<int32_t> token, loop.next());
    if (!token) return loop.generation();
  }
}

Result<std::vector<Generation>> generate_many(run::Session& session,
                                              std::span<const std::vector<int32_t>> prompts, int64_t max_new,
                                              const sample::Params& params,
                                              std::span<const int32_t> stop_tokens) {
  if (prompts.size() == 1) {
    INVAR_TRY(Generation one, generate(session, prompts[0], max_new, params, stop_tokens));
    return std::vector<Generation>{std::move(one)};
  }
  std::vector<Generation> all(prompts.size());
  std::vector<run::NextToken> next;
  const bool beside = on_gpu(session);
  // Logits of the sequences `who`, in their order -> a token more of each; those that go on ->
  // next.
  auto take = [&](std::span<const float> logits, std::span<const int64_t> who) -> Status {
    const size_t vocab = static_cast<size_t>(session.vocab());
    auto row = [=](int i) { return logits.subspan(static_cast<size_t>(i) * vocab, vocab); };
    std::vector<std::optional<Result<int32_t>>> picked(who.size());
    std::vector<Digest*> digests;
    for (const int64_t s : who) digests.push_back(&all[s].logits.emplace_back());
    auto commit = [row, digests](int i) { *digests[i] = receipt::commit(row(i)); };
    const int count = static_cast<int>(who.size());
    session.parallel_for(count, [&](int i) {
      const auto s = static_cast<size_t>(who[i]);
      picked[i] = sample::pick(row(i), params, {prompts[s], all[s].tokens, stop_tokens, max_new});
      if (!beside) commit(i);
    });
    for (size_t i = 0; i < who.size(); ++i) {
      INVAR_TRY(const int32_t token, *std::move(picked[i]));
      Generation& g = all[who[i]];
      g.tokens.push_back(token);
      if (std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end())
        g.finish_reason = "stop";
      else if (static_cast<int64_t>(g.tokens.size()) == max_new)
        g.finish_reason = "length";
      else
        next.push_back({who[i], token});
    }
    if (beside) session.parallel_for_overlapped(count, commit);
    return {};
  };
  const auto start = Clock::now();
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto sequence = static_cast<int64_t>(i);
    session.reset(sequence);
    INVAR_TRY(std::span<const float> logits, session.step(prompts[i], false, sequence));
    INVAR_CHECK_OK(take(logits, {&sequence, 1}));
  }
  all[0].prefill_seconds = since(start);
  const auto first = Clock::now();
  int64_t count = 0;
  while (!next.empty()) {
    std::vector<int64_t> who;
    for (const run::NextToken& n : next) who.push_back(n.sequence);
    INVAR_TRY(std::span<const float> logits, session.step_many(next));
    next.clear();
    INVAR_CHECK_OK(take(logits, who));
    count += static_cast<int64_t>(who.size());
  }
  session.finish_overlapped();
  if (const double s = since(first); count && s > 0)
    all[0].decode_tokens_per_second = static_cast<double>(count) / s;
  return all;
}

Result<std::string> all_logits(run::Session& session, std::span<const std::vector<int32_t>> sequences) {
  std::string all;
  for (const auto& tokens : sequences) {
    session.reset();
    INVAR_TRY(std::span<const float> logits, session.step(tokens, /*all=*/true));
    const size_t at = all.size();
    all.resize(at + logits.size_bytes());
    copy_little_endian(all.data() + at, logits.data(), logits.size_bytes(), sizeof(float));
  }
  return all;
}

}  // namespace invar::generate
