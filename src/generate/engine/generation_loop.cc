#include "generate/engine/generation_loop.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/endian.h"
#include "generate/scheduling/decode_groups.h"
#include "receipt/receipt.h"

namespace invar::generate {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Rows of a step with drafts at most: one pass, whose end states of fixed size can go back from.
constexpr int64_t kMostRows = 32;

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
  if (returned_ == generation_.tokens.size()) {
    if (complete()) {
      session_.finish_overlapped();
      return std::optional<int32_t>();
    }
    GenerationLoop* const self = this;
    INVAR_CHECK_OK(advance(session_, {&self, 1}));
    if (problem_) return *problem_;
  }
  return std::optional(generation_.tokens[returned_++]);
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
    Generation& made = loops[i]->generation_;
    picked[i] = sample::pick(row(i), t.params, {t.prompt, made.tokens, t.stop_tokens, t.max_new});
    if (t.logprobs && *picked[i]) made.logprobs.push_back(sample::logprobs(row(i), **picked[i], *t.logprobs));
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

Status GenerationLoop::encode() {
  if (task_.source.empty() || encoded_) return {};
  encoded_ = true;
  return session_.encode(task_.source, sequence_);
}

// The step that computes the prompt.
Status GenerationLoop::take_first() {
  const int64_t first = session_.position(sequence_);
  INVAR_TRY(const std::span<const float> logits, session_.step(unfed_, false, sequence_));
  if (task_.drafter) task_.drafter->computed(first, static_cast<int64_t>(unfed_.size()), session_.hidden());
  unfed_ = {};
  GenerationLoop* const self = this;
  return take(session_, logits, {&self, 1});
}

// What comes behind the answer, as far as a step that computes `unfed` tokens before it has room.
std::vector<int32_t> GenerationLoop::draft(int64_t unfed) {
  const Generation& g = generation_;
  const int64_t left = task_.max_new - static_cast<int64_t>(g.tokens.size()) - 1,
                rows = std::min(session_.chunk(), kMostRows) - unfed, most = std::min(left, rows);
  if (most < 1) return {};
  const int64_t length = std::min(draft_length_.next(), most);
  if (length < 1) return {};
  return task_.drafter->propose({task_.prompt, g.tokens, task_.stop_tokens, task_.max_new}, task_.params,
                                length);
}

// Computes the logits of the tokens that are not computed yet, and of the draft behind them, and
// takes from them what step after step would: each token from the logits behind the one before, as
// long as the draft has that one.
Status GenerationLoop::step_with_drafts() {
  Generation& g = generation_;
  const auto vocab = static_cast<size_t>(session_.vocab());
  const int64_t fed = session_.position(sequence_);
  std::vector<int32_t> tokens(task_.prompt.begin(), task_.prompt.end());
  tokens.insert(tokens.end(), g.tokens.begin(), g.tokens.end());
  const auto known = static_cast<int64_t>(tokens.size()), unfed = known - fed;
  const std::vector<int32_t> drafts = draft(unfed);
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());
  const std::span<const int32_t> step = std::span(tokens).subspan(static_cast<size_t>(fed));
  if (drafts.empty()) {
    INVAR_TRY(const std::span<const float> logits, session_.step(step, false, sequence_));
    task_.drafter->computed(fed, unfed, session_.hidden());
    GenerationLoop* const self = this;
    return take(session_, logits, {&self, 1});
  }
  // All rows are wanted, so that they are one pass.
  draft_logits_.resize(step.size() * vocab);
  INVAR_CHECK_OK(session_.step_rows(
      step, static_cast<int64_t>(step.size()),
      [&](int64_t first, std::span<const float> rows) {
        std::ranges::copy(rows, draft_logits_.begin() + first * static_cast<int64_t>(vocab));
      },
      sequence_));
  const size_t count = drafts.size() + 1, made = g.tokens.size();
  const std::span<const int32_t> answer = std::span(tokens).subspan(task_.prompt.size());
  const auto row = [&](size_t i) {
    return std::span(draft_logits_).subspan((static_cast<size_t>(unfed) - 1 + i) * vocab, vocab);
  };
  std::vector<Digest> digests(count);
  std::vector<std::optional<Result<int32_t>>> picked(count);
  session_.parallel_for(2 * static_cast<int>(count), [&](int job) {
    const auto i = static_cast<size_t>(job / 2);
    if (job % 2 == 0)
      picked[i] = sample::pick(row(i), task_.params,
                               {task_.prompt, answer.first(made + i), task_.stop_tokens, task_.max_new});
    else
      digests[i] = receipt::commit(row(i));
  });
  size_t accepted = 0;
  for (;; ++accepted) {
    if (!*picked[accepted]) {
      problem_ = picked[accepted]->error();
      break;
    }
    const int32_t token = **picked[accepted];
    g.logits.push_back(digests[accepted]);
    if (task_.logprobs) g.logprobs.push_back(sample::logprobs(row(accepted), token, *task_.logprobs));
    append(token);
    if (accepted == drafts.size() || token != drafts[accepted] || complete()) break;
  }
  const auto right = static_cast<int64_t>(accepted);
  g.drafted += static_cast<int64_t>(drafts.size()), g.accepted += right;
  draft_length_.took(static_cast<int64_t>(drafts.size()), right);
  task_.drafter->computed(fed, unfed + right, session_.hidden());
  session_.reset(sequence_, known + right);
  return {};
}

Status GenerationLoop::advance(run::Session& session, std::span<GenerationLoop* const> loops) {
  for (GenerationLoop* const loop : loops) INVAR_CHECK_OK(loop->encode());
  if (loops.size() == 1 && !loops[0]->unfed_.empty()) return loops[0]->take_first();
  if (loops.size() == 1 && loops[0]->task_.drafter) return loops[0]->step_with_drafts();
  std::vector<run::NewTokens> prompts;  // without their last tokens
  std::vector<run::NextToken> next;
  for (const GenerationLoop* const loop : loops) {
    const std::span<const int32_t> tokens = loop->not_computed();
    if (tokens.size() > 1) prompts.push_back({loop->sequence(), tokens.first(tokens.size() - 1)});
    next.push_back({loop->sequence(), tokens.back()});
  }
  if (!prompts.empty()) {
    INVAR_CHECK_OK(session.append_many(prompts));
  }
  INVAR_TRY(const std::span<const float> logits, session.step_many(next));
  for (GenerationLoop* const loop : loops) loop->unfed_ = {};
  return take(session, logits, loops);
}

Status GenerationLoop::start(run::Session& session, std::span<GenerationLoop* const> loops) {
  std::vector<run::NextToken> next;
  for (const GenerationLoop* const loop : loops)
    next.push_back({loop->sequence(), loop->not_computed().back()});
  INVAR_CHECK_OK(session.start_many(next));
  for (GenerationLoop* const loop : loops) loop->in_flight_ = true;
  return {};
}

Status GenerationLoop::finish(run::Session& session, std::span<GenerationLoop* const> loops) {
  for (GenerationLoop* const loop : loops) loop->in_flight_ = false;
  INVAR_TRY(const std::span<const float> logits, session.take_many());
  for (GenerationLoop* const loop : loops) loop->unfed_ = {};
  return take(session, logits, loops);
}

// The next tokens of the prompt, with the log-probabilities of those behind each.
Status GenerationLoop::prefill_rows(size_t count) {
  const auto vocab = static_cast<size_t>(session_.vocab());
  const std::span<const int32_t> behind = unfed_.subspan(1);
  std::vector<sample::StepLogprobs>& all = generation_.prompt_logprobs;
  const size_t before = all.size();
  all.resize(before + count);
  INVAR_CHECK_OK(session_.step_rows(
      unfed_.first(count), static_cast<int64_t>(count),
      [&](int64_t first, std::span<const float> rows) {
        session_.parallel_for(static_cast<int>(rows.size() / vocab), [&](int i) {
          const size_t at = static_cast<size_t>(first) + static_cast<size_t>(i);
          all[before + at] = sample::logprobs(rows.subspan(static_cast<size_t>(i) * vocab, vocab), behind[at],
                                              task_.logprobs.value_or(0));
        });
      },
      sequence_));
  unfed_ = unfed_.subspan(count);
  return {};
}

void GenerationLoop::resume(int64_t sequence) {
  known_.assign(task_.prompt.begin(), task_.prompt.end());
  known_.insert(known_.end(), generation_.tokens.begin(), generation_.tokens.end());
  sequence_ = sequence, encoded_ = false;
  if (wants_prompt_rows()) generation_.prompt_logprobs.clear();
  unfed_ = std::span<const int32_t>(known_).subspan(static_cast<size_t>(session_.position(sequence)));
}

Status GenerationLoop::prefill(run::Session& session, std::span<const Part> parts) {
  std::vector<run::NewTokens> pieces;
  for (const auto& [loop, count] : parts) {
    INVAR_CHECK_OK(loop->encode());
    if (loop->wants_prompt_rows()) {
      INVAR_CHECK_OK(loop->prefill_rows(count));
      continue;
    }
    pieces.push_back({loop->sequence(), loop->unfed_.first(count)});
    loop->unfed_ = loop->unfed_.subspan(count);
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
                                              const std::function<void(int64_t)>& made,
                                              std::span<const run::Source> sources) {
  std::deque<GenerationLoop> loops;
  for (const auto& prompt : prompts) {
    GenerationTask task{prompt, max_new, params, stop_tokens, {}};
    if (!sources.empty()) task.source = sources[loops.size()];
    loops.emplace_back(session, std::move(task), 0, static_cast<int64_t>(loops.size()));
  }
  const auto start = Clock::now();
  auto first = start;
  int64_t count = 0;
  DecodeGroups groups(session);
  for (bool prompts_done = false;; prompts_done = true) {
    std::vector<GenerationLoop*> open;
    for (GenerationLoop& loop : loops)
      if (!loop.complete() && !loop.in_flight()) open.push_back(&loop);
    if (open.empty() && groups.empty()) break;
    if (prompts_done && groups.divide(open.size())) {
      INVAR_CHECK_OK(groups.start(open));
      INVAR_TRY(open, groups.take());
    } else {
      INVAR_CHECK_OK(GenerationLoop::advance(session, open));
    }
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

Result<std::string> all_logits(run::Session& session, std::span<const std::vector<int32_t>> sequences,
                               std::span<const run::Source> sources) {
  std::string all;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& tokens = sequences[i];
    session.reset();
    if (!sources.empty()) {
      INVAR_CHECK_OK(session.encode(sources[i]));
    }
    INVAR_TRY(std::span<const float> logits, session.step(tokens, /*all=*/true));
    const size_t at = all.size();
    all.resize(at + logits.size_bytes());
    copy_little_endian(all.data() + at, logits.data(), logits.size_bytes(), sizeof(float));
  }
  return all;
}

}  // namespace invar::generate
