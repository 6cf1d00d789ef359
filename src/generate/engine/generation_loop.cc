#include "generate/engine/generation_loop.h"

#include <algorithm>
#include <deque>
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

GenerationLoop::GenerationLoop(run::Session& session, GenerationTask task, size_t kept, int64_t sequence)
    : session_(session), task_(std::move(task)), sequence_(sequence) {
  unfed_ = task_.prompt.subspan(static_cast<size_t>(session_.reset(sequence_, static_cast<int64_t>(kept))));
  if (task_.max_new < 1) generation_.finish_reason = "length";
  start_ = Clock::now();
}

// A commitment that is still to be made writes into generation_.
GenerationLoop::~GenerationLoop() {
  session_.finish_overlapped();
}

void GenerationLoop::append(int32_t token) {
  Generation& g = generation_;
  g.tokens.push_back(token);
  const size_t count = g.tokens.size();
  if (count == 1)
    g.prefill_seconds = since(start_), first_ = Clock::now();
  else if (const double s = since(first_); s > 0)
    g.decode_tokens_per_second = static_cast<double>(count - 1) / s;
  const auto& stops = task_.stop_tokens;
  if ((task_.stop_strings && task_.stop_strings->ends(token)) ||
      std::find(stops.begin(), stops.end(), token) != stops.end())
    g.finish_reason = "stop";
  else if (static_cast<int64_t>(count) == task_.max_new)
    g.finish_reason = "length";
}

Result<std::optional<int32_t>> GenerationLoop::next() {
  if (complete()) {
    session_.finish_overlapped();
    return std::optional<int32_t>();
  }
  GenerationLoop* const self = this;
  INVAR_CHECK_OK(advance(session_, {&self, 1}));
  if (problem_) return *problem_;
  return std::optional(generation_.tokens.back());
}

Status GenerationLoop::take(run::Session& session, std::span<const float> logits,
                            std::span<GenerationLoop* const> loops) {
  const auto vocab = static_cast<size_t>(session.vocab());
  const auto row = [=](int i) { return logits.subspan(static_cast<size_t>(i) * vocab, vocab); };
  std::vector<Digest*> digests;
  for (GenerationLoop* loop : loops) digests.push_back(&loop->generation_.logits.emplace_back());
  const auto commit = [row, digests](int i) { *digests[i] = receipt::commit(row(i)); };
  std::vector<std::optional<Result<int32_t>>> picked(loops.size());
  const auto pick = [&](int i) {
    const GenerationTask& t = loops[i]->task_;
    picked[i] =
        sample::pick(row(i), t.params, {t.prompt, loops[i]->generation_.tokens, t.stop_tokens, t.max_new});
  };
  const int count = static_cast<int>(loops.size());
  if (on_gpu(session))
    session.parallel_for(count, pick);
  else
    session.parallel_for(2 * count, [&](int i) { i % 2 == 0 ? pick(i / 2) : commit(i / 2); });
  for (size_t i = 0; i < loops.size(); ++i) {
    if (*picked[i])
      loops[i]->append(**picked[i]);
    else
      loops[i]->problem_ = picked[i]->error();
  }
  if (on_gpu(session)) session.parallel_for_overlapped(count, commit);
  return {};
}

Status GenerationLoop::advance(run::Session& session, std::span<GenerationLoop* const> loops) {
  if (loops.size() == 1 && loops[0]->generation().tokens.empty()) {
    INVAR_TRY(const std::span<const float> logits,
              session.step(loops[0]->unfed_, false, loops[0]->sequence()));
    return take(session, logits, loops);
  }
  std::vector<run::NewTokens> prompts;  // without their last tokens
  std::vector<run::NextToken> next;
  for (const GenerationLoop* const loop : loops) {
    const std::span<const int32_t> tokens =
        loop->generation().tokens.empty() ? loop->unfed_ : std::span(loop->generation().tokens).last(1);
    if (tokens.size() > 1) prompts.push_back({loop->sequence(), tokens.first(tokens.size() - 1)});
    next.push_back({loop->sequence(), tokens.back()});
  }
  if (!prompts.empty()) {
    INVAR_CHECK_OK(session.append_many(prompts));
  }
  INVAR_TRY(const std::span<const float> logits, session.step_many(next));
  return take(session, logits, loops);
}

Status GenerationLoop::prefill(run::Session& session, std::span<GenerationLoop* const> loops, int64_t most) {
  std::vector<run::NewTokens> pieces;
  for (GenerationLoop* const loop : loops) {
    const size_t count = std::min(loop->unfed(), static_cast<size_t>(most));
    if (count == 0) continue;
    pieces.push_back({loop->sequence(), loop->unfed_.first(count)});
    loop->unfed_ = loop->unfed_.subspan(count);
    most -= static_cast<int64_t>(count);
  }
  return pieces.empty() ? Status() : session.append_many(pieces);
}

Result<Generation> generate(run::Session& session, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params& params, std::span<const int32_t> stop_tokens) {
  GenerationLoop loop(session, {prompt, max_new, params, stop_tokens, {}});
  for (;;) {
    INVAR_TRY(const std::optional<int32_t> token, loop.next());
    if (!token) return loop.generation();
  }
}

Result<std::vector<Generation>> generate_many(run::Session& session,
                                              std::span<const std::vector<int32_t>> prompts, int64_t max_new,
                                              const sample::Params& params,
                                              std::span<const int32_t> stop_tokens,
                                              const std::function<void(int64_t)>& made) {
  std::deque<GenerationLoop> loops;
  for (const auto& prompt : prompts)
    loops.emplace_back(session, GenerationTask{prompt, max_new, params, stop_tokens, {}}, 0,
                       static_cast<int64_t>(loops.size()));
  const auto start = Clock::now();
  auto first = start;
  int64_t count = 0;
  for (bool prompts_done = false;; prompts_done = true) {
    std::vector<GenerationLoop*> open;
    for (GenerationLoop& loop : loops)
      if (!loop.complete()) open.push_back(&loop);
    if (open.empty()) break;
    INVAR_CHECK_OK(GenerationLoop::advance(session, open));
    for (const GenerationLoop* const loop : open)
      if (loop->problem()) return *loop->problem();
    if (prompts_done)
      count += static_cast<int64_t>(open.size());
    else
      first = Clock::now();
    if (made) made(count + static_cast<int64_t>(loops.size()));
  }
  session.finish_overlapped();
  std::vector<Generation> all;
  for (const GenerationLoop& loop : loops) all.push_back(loop.generation());
  all[0].prefill_seconds = std::chrono::duration<double>(first - start).count();
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
