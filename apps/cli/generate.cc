#include "generate.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "receipt/receipt.h"

namespace invar::cli {

Result<run::Session> open_session(plan::Plan plan, const std::string& folder, const ExecutionOptions& o,
                                  int64_t capacity) {
  run::Options options;
  options.device = o.cpu_only ? "cpu" : o.device;
  options.threads = o.threads;
  options.isa = o.isa;
  options.capacity = capacity;
  options.chunk = o.prefill_chunk;
  options.use_cache = !o.no_kv_cache;
  return run::Session::open(std::move(plan), folder, options);
}

Result<Generation> generate(run::Session& session, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params& params, std::span<const int32_t> stop_tokens,
                            const std::function<void(int32_t)>& on_token) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  Generation g;
  std::span<const int32_t> next = prompt;
  session.reset();
  const auto start = Clock::now();
  Clock::time_point first;
  for (int64_t i = 0; i < max_new; ++i) {
    INVAR_TRY(std::span<const float> logits, session.step(next));
    Digest& digest = g.logits.emplace_back();
    std::optional<Result<int32_t>> picked;
    session.share(2, [&](int task) {
      if (task == 0)
        picked = sample::pick(logits, params, static_cast<uint64_t>(i));
      else
        digest = receipt::commit(logits);
    });
    INVAR_TRY(const int32_t token, *std::move(picked));
    g.tokens.push_back(token);
    if (i == 0) g.prefill_seconds = since(start), first = Clock::now();
    on_token(token);
    if (const double s = since(first); i > 0 && s > 0)
      g.decode_tokens_per_second = static_cast<double>(i) / s;
    if (std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end()) {
      g.finish_reason = "stop";
      return g;
    }
    next = std::span(g.tokens).last(1);
  }
  g.finish_reason = "length";
  return g;
}

}  // namespace invar::cli
