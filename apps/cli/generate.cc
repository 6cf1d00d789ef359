#include "generate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/kernel.h"
#include "receipt/receipt.h"

namespace invar::cli {

run::Options run_options(const ExecutionOptions& o) {
  run::Options options;
  options.device = o.cpu_only ? "cpu" : o.device;
  options.threads = o.threads;
  options.isa = o.isa;
  return options;
}

run::Options session_options(const ExecutionOptions& o, int64_t capacity, int64_t sequences) {
  run::Options options = run_options(o);
  options.capacity = capacity;
  options.sequences = sequences;
  options.chunk = o.prefill_chunk;
  options.use_cache = !o.no_kv_cache;
  return options;
}

void report_threads(int started, const ExecutionOptions& o) {
  const int wanted = o.threads > 0 ? o.threads : available_cores();
  if (started < wanted)
    std::fprintf(stderr, "  %-9s %d of %d: the system starts no more; slower, the same bits\n", "threads",
                 started, wanted);
}

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

}  // namespace

Result<Generation> generate(run::Session& session, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params& params, std::span<const int32_t> stop_tokens,
                            const std::function<void(int32_t)>& on_token) {
  Generation g;
  std::span<const int32_t> next = prompt;
  // While a GPU does the next step the host commits to the logits of the last one.
  const bool beside = session.isa() == ops::kCuda;
  session.reset();
  const auto start = Clock::now();
  Clock::time_point first;
  for (int64_t i = 0; i < max_new; ++i) {
    INVAR_TRY(std::span<const float> logits, session.step(next));
    std::optional<Result<int32_t>> picked;
    g.logits.emplace_back();
    auto commit = [logits, to = &g.logits.back()](int) { *to = receipt::commit(logits); };
    session.parallel_for(beside ? 1 : 2, [&](int task) {
      if (task == 0)
        picked = sample::pick(logits, params, static_cast<uint64_t>(i));
      else
        commit(task);
    });
    INVAR_TRY(const int32_t token, *std::move(picked));
    if (beside) session.parallel_for_overlapped(1, commit);
    g.tokens.push_back(token);
    if (i == 0) g.prefill_seconds = since(start), first = Clock::now();
    on_token(token);
    if (const double s = since(first); i > 0 && s > 0)
      g.decode_tokens_per_second = static_cast<double>(i) / s;
    if (std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end()) {
      g.finish_reason = "stop";
      session.finish_overlapped();
      return g;
    }
    next = std::span(g.tokens).last(1);
  }
  g.finish_reason = "length";
  session.finish_overlapped();
  return g;
}

Result<std::vector<Generation>> generate_many(run::Session& session,
                                              std::span<const std::vector<int32_t>> prompts, int64_t max_new,
                                              const sample::Params& params,
                                              std::span<const int32_t> stop_tokens) {
  std::vector<Generation> all(prompts.size());
  std::vector<run::NextToken> next;
  const bool beside = session.isa() == ops::kCuda;  // as above
  // Logits of the sequences `who`, in their order -> a token more of each; those that go on -> next.
  auto take = [&](std::span<const float> logits, std::span<const int64_t> who) -> Status {
    const size_t vocab = static_cast<size_t>(session.vocab());
    auto row = [=](int i) { return logits.subspan(static_cast<size_t>(i) * vocab, vocab); };
    std::vector<std::optional<Result<int32_t>>> picked(who.size());
    std::vector<Digest*> digests;
    for (const int64_t s : who) digests.push_back(&all[s].logits.emplace_back());
    auto commit = [row, digests](int i) { *digests[i] = receipt::commit(row(i)); };
    const int count = static_cast<int>(who.size());
    session.parallel_for(count, [&](int i) {
      picked[i] = sample::pick(row(i), params, static_cast<uint64_t>(all[who[i]].tokens.size()));
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

}  // namespace invar::cli
