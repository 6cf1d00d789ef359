// Figures of the server in Prometheus' text form. Names end as vLLM's do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "serve/archive/archive.h"
#include "serve/threads/generator.h"

namespace invar::serve {

class Histogram {
 public:
  static constexpr double kSeconds[] = {0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5,
                                        1,     2.5,   5,    10,   30,   60,  120,  300};
  static constexpr double kTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                       1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
  explicit Histogram(std::span<const double> bounds = kSeconds) : bounds_(bounds) {}
  void add(double value);
  void print(const std::string& name, const std::string& help, std::string& out) const;

 private:
  const std::span<const double> bounds_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(bounds_.size() + 1);
  double sum_ = 0;
};

struct Metrics {
  std::atomic<uint64_t> prompt_tokens{0}, generation_tokens{0}, receipts{0}, cancelled{0}, repeats{0};
  Histogram first_token, between_tokens, each_token, whole;  // seconds
  Histogram queue, prefill, decode, inference;               // seconds of an answer
  Histogram prompt{Histogram::kTokens}, generation{Histogram::kTokens}, limit{Histogram::kTokens};

  void count_prompt(size_t tokens);
  // The lengths of an answer, and how it ended.
  void count_answer(const receipt::Receipt&);
  // Seconds of what was computed for one.
  void count_times(double queued, double to_first_token, double from_there);
  void count_success(const std::string& finish_reason) { add_to(success_, finish_reason); }
  void count_replay(const std::string& verdict) { add_to(replays_, verdict); }
  void count_status(int status) { add_to(statuses_, std::to_string(status)); }
  std::string print(const Generator::Load&, const Archive::Load&, size_t connections) const;

 private:
  using Counts = std::map<std::string, uint64_t>;
  void add_to(Counts& counts, const std::string& label) {
    const std::lock_guard lock(mutex_);
    ++counts[label];
  }

  mutable std::mutex mutex_;
  Counts success_, replays_, statuses_;
};

}  // namespace invar::serve
