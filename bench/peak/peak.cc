// Measures the machine's peak FMA rate and memory bandwidth.
#include "bench/peak/peak.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace invar::bench {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

constexpr int kTrials = 3;
constexpr double kTrialSeconds = 0.006;

// The best rate of `once`, which does `work`: rounds are doubled until a trial lasts long enough to
// be timed.
template <class Once>
double best_rate(double work, Once once) {
  int64_t rounds = 1;
  double best = 0;
  for (int trial = 0; trial < kTrials;) {
    const double start = now();
    for (int64_t r = 0; r < rounds; ++r) once();
    const double seconds = now() - start;
    best = std::max(best, work * static_cast<double>(rounds) / seconds);
    if (seconds < kTrialSeconds)
      rounds *= 2;
    else
      ++trial;
  }
  return best;
}

// Powers of two from 16 KiB: between them a cache level's rate hardly changes.
int64_t level(int64_t working_set) {
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(working_set)));
  return std::clamp<int64_t>(size, 16 << 10, Peaks::kOutOfCache);
}

// A place for results, so that no loop is dropped.
volatile float kept_float;
volatile uint32_t kept_bits;

}  // namespace

Peaks::Peaks(std::string_view isa) : row_(peak_rows().back()) {
  for (const PeakRow* r : peak_rows())
    if (r->isa == isa) row_ = r;
}

double Peaks::known_flops(int threads) const {
  auto it = flops_.find(threads);
  return it == flops_.end() ? 0 : it->second;
}

double Peaks::known_bytes(int threads, Traffic traffic, int64_t working_set) const {
  auto it = bytes_.find({threads, traffic, level(working_set)});
  return it == bytes_.end() ? 0 : it->second;
}

double Peaks::flops(Pool& pool) {
  constexpr int64_t kRounds = 20000;
  const auto work = [&](int, int64_t, int64_t) { kept_float = row_->fma(kRounds); };
  double& rate = flops_[pool.threads()];
  return rate =
             std::max(rate, best_rate(static_cast<double>(row_->flops_per_round * kRounds * pool.threads()),
                                      [&] { pool.run(pool.threads(), work); }));
}

double Peaks::bytes(Pool& pool, Traffic traffic, int64_t working_set) {
  const int64_t size = level(working_set), floats = size / 4, half = floats / 2;
  if (static_cast<int64_t>(memory_.size()) < floats) memory_.assign(static_cast<size_t>(floats), 1.0f);
  float* m = memory_.data();
  const auto work = [&](int, int64_t begin, int64_t end) {  // in units of 256 floats
    if (traffic == Traffic::read)
      kept_bits = row_->read(m + begin * 256, (end - begin) * 256);
    else
      row_->copy(m + half + begin * 256, m + begin * 256, (end - begin) * 256);
  };
  const int64_t units = (traffic == Traffic::read ? floats : half) / 256;
  double& rate = bytes_[{pool.threads(), traffic, size}];
  return rate = std::max(rate, best_rate(static_cast<double>(size), [&] { pool.run(units, work); }));
}

}  // namespace invar::bench
