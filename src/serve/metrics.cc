#include "serve/metrics.h"

#include <algorithm>

#include "base/text/json.h"

namespace invar::serve {
namespace {

void head(const std::string& name, const char* type, const std::string& help, std::string& out) {
  out += "# HELP invar_" + name + " " + help + "\n# TYPE invar_" + name + " " + type + "\n";
}

void value(const std::string& name, const char* type, const std::string& help, uint64_t v, std::string& out) {
  head(name, type, help, out);
  out += "invar_" + name + " " + std::to_string(v) + "\n";
}

void labelled(const std::string& name, const std::string& help, const std::string& label,
              const std::map<std::string, uint64_t>& counts, std::string& out) {
  head(name, "counter", help, out);
  for (const auto& [of, count] : counts)
    out += "invar_" + name + "{" + label + "=\"" + of + "\"} " + std::to_string(count) + "\n";
}

}  // namespace

void Histogram::add(double value) {
  const auto bucket = static_cast<size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
  const std::lock_guard lock(mutex_);
  ++counts_[bucket], sum_ += value;
}

void Histogram::print(const std::string& name, const std::string& help, std::string& out) const {
  head(name, "histogram", help, out);
  const std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i];
    const std::string bound = i < bounds_.size() ? json::spelled(bounds_[i]) : "+Inf";
    out += "invar_" + name + "_bucket{le=\"" + bound + "\"} " + std::to_string(total) + "\n";
  }
  out += "invar_" + name + "_sum " + json::spelled(sum_) + "\ninvar_" + name + "_count " +
         std::to_string(total) + "\n";
}

void Metrics::count_prompt(size_t tokens) {
  prompt_tokens += tokens, prompt.add(static_cast<double>(tokens));
}

void Metrics::count_answer(const receipt::Receipt& answer) {
  // A model that hears has no tokens of a prompt but those that the answer continues.
  count_prompt(answer.prompt_tokens.empty() ? answer.decoder_tokens.size() : answer.prompt_tokens.size());
  generation_tokens += answer.tokens.size();
  generation.add(static_cast<double>(answer.tokens.size()));
  limit.add(static_cast<double>(answer.max_new_tokens));
  count_success(answer.finish_reason);
}

void Metrics::count_times(double queued, double to_first_token, double from_there) {
  queue.add(queued), prefill.add(to_first_token), decode.add(from_there);
  inference.add(to_first_token + from_there);
}

std::string Metrics::print(const Generator::Load& load, const Archive::Load& archive,
                           size_t connections) const {
  std::string out;
  value("num_requests_running", "gauge", "Answers that are computed.", load.running, out);
  value("num_requests_waiting", "gauge", "Requests that wait for a sequence.", load.waiting, out);
  const generate::Scheduler::Figures& e = load.engine;
  value("num_preemptions_total", "counter", "Requests that gave their sequence to another one.",
        e.preemptions, out);
  value("prefix_cache_queries_total", "counter", "Tokens of prompts that were looked for.", e.prefix_queries,
        out);
  value("prefix_cache_hits_total", "counter", "Tokens of prompts that needed no computation.", e.prefix_hits,
        out);
  head("kv_cache_usage_perc", "gauge", "Used keys and values; 1 is all.", out);
  out += "invar_kv_cache_usage_perc " + json::spelled(e.kv_cache_usage) + "\n";
  value("num_connections", "gauge", "Open connections.", connections, out);
  value("prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens, out);
  value("generation_tokens_total", "counter", "Tokens of answers.", generation_tokens, out);
  value("receipts_written_total", "counter", "Receipts.", receipts, out);
  value("answers_from_store_total", "counter", "Answers that were given before.", repeats, out);
  value("receipts_waiting", "gauge", "Receipts that wait for the store.", archive.waiting, out);
  value("store_failures_total", "counter", "Attempts to keep something that failed.", archive.failures, out);
  value("requests_cancelled_total", "counter", "Requests whose clients left.", cancelled, out);
  {
    const std::lock_guard lock(mutex_);
    labelled("request_success_total", "Complete answers.", "finished_reason", success_, out);
    labelled("replays_total", "Receipts that were computed again.", "verdict", replays_, out);
    labelled("http_responses_total", "Responses.", "status", statuses_, out);
  }
  first_token.print("time_to_first_token_seconds", "From the request to its first token.", out);
  between_tokens.print("inter_token_latency_seconds", "Between two tokens of an answer.", out);
  each_token.print("request_time_per_output_token_seconds", "Of an answer, a token behind the first.", out);
  whole.print("e2e_request_latency_seconds", "From the request to the end of its answer.", out);
  queue.print("request_queue_time_seconds", "From the request until a sequence is free for it.", out);
  prefill.print("request_prefill_time_seconds", "From there to its first token.", out);
  decode.print("request_decode_time_seconds", "From its first token to its last.", out);
  inference.print("request_inference_time_seconds", "Both of these.", out);
  prompt.print("request_prompt_tokens", "Tokens of a prompt.", out);
  generation.print("request_generation_tokens", "Tokens of an answer.", out);
  limit.print("request_params_max_tokens", "The most tokens that an answer may have.", out);
  return out;
}

}  // namespace invar::serve
