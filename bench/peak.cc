#include "peak.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>

namespace invar::bench {
namespace {

constexpr int kTrials = 7;
constexpr double kTrialSeconds = 0.006;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The best rate of `once`, which does `work`: rounds are doubled until a trial lasts long enough to be timed.
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

// A place for results, so that no loop is dropped.
volatile float kept_float;
volatile uint32_t kept_bits;

}  // namespace

Peaks::Peaks(std::string_view isa) : row_(peak_rows().back()) {
  for (const PeakRow* r : peak_rows())
    if (r->isa == isa) row_ = r;
}

double Peaks::flops(Pool& pool) {
  double& rate = flops_[pool.threads()];
  if (rate > 0) return rate;
  constexpr int64_t kRounds = 20000;
  const auto work = [&](int, int64_t, int64_t) { kept_float = row_->fma(kRounds); };
  return rate = best_rate(static_cast<double>(row_->flops_per_round * kRounds * pool.threads()),
                          [&] { pool.run(pool.threads(), work); });
}

double Peaks::bytes(Pool& pool, Traffic traffic, int64_t working_set) {
  // Powers of two from 16 KiB: between them a cache level's rate hardly changes.
  const int64_t size = std::clamp<int64_t>(
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(working_set))), 16 << 10, kOutOfCache);
  double& rate = bytes_[{pool.threads(), traffic, size}];
  if (rate > 0) return rate;
  const int64_t floats = size / 4, half = floats / 2;
  std::unique_ptr<float[]> memory(new float[static_cast<size_t>(floats)]);
  std::memset(memory.get(), 1, static_cast<size_t>(size));
  float* m = memory.get();
  const auto work = [&](int, int64_t begin, int64_t end) {  // in units of 256 floats
    if (traffic == Traffic::read)
      kept_bits = row_->read(m + begin * 256, (end - begin) * 256);
    else
      row_->copy(m + half + begin * 256, m + begin * 256, (end - begin) * 256);
  };
  const int64_t units = (traffic == Traffic::read ? floats : half) / 256;
  return rate = best_rate(static_cast<double>(size), [&] { pool.run(units, work); });
}

}  // namespace invar::bench
