// Figures of the server in Prometheus' text form. Names end as vLLM's do.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "serve/archive/archive.h"
#include "serve/threads/generator.h"

namespace invar::serve {

class Histogram {
 public:
  void add(double seconds);
  void print(const std::string& name, const std::string& help, std::string& out) const;

 private:
  static constexpr double kBounds[] = {0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5,
                                       1,     2.5,   5,    10,   30,   60,  120,  300};
  mutable std::mutex mutex_;
  std::array<uint64_t, std::size(kBounds) + 1> counts_{};
  double sum_ = 0;
};

struct Metrics {
  std::atomic<uint64_t> prompt_tokens{0}, generation_tokens{0}, receipts{0}, cancelled{0}, repeats{0};
  Histogram first_token, between_tokens, each_token, whole;  // seconds

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
