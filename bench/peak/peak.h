// The machine's limits: fused multiply-adds per second in registers, bytes read and copied per
// second for a working set of a given size (caches and memory alike), on 1 ... N threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/thread_pool.h"

namespace invar::bench {

double now();  // seconds of a steady clock

// Compiled once per instruction set over num/lane (peak_lanes.cc).
struct PeakRow {
  std::string_view isa;
  int64_t flops_per_round;  // of fma()
  // `rounds` rounds of independent chains of fused multiply-adds; the result keeps them from being
  // dropped.
  float (*fma)(int64_t rounds);
  // Reads n floats (a multiple of 256) and keeps a bit of each.
  uint32_t (*read)(const float* x, int64_t n);
  void (*copy)(float* to, const float* from, int64_t n);
};
std::span<const PeakRow* const> peak_rows();

enum class Traffic { read, copy };

// The best of all trials so far, since a limit is what the machine can do; every call makes some
// more of them.
class Peaks {
 public:
  // An instruction set without lanes of its own ("reference") uses scalar's.
  explicit Peaks(std::string_view isa);
  double flops(Pool&);  // per second
  // Bytes per second, reads and writes both counted, for a working set of about this many bytes.
  double bytes(Pool&, Traffic, int64_t working_set);
  // The results of the calls above, without more trials; 0 where there were none.
  double known_flops(int threads) const;
  double known_bytes(int threads, Traffic, int64_t working_set) const;
  static constexpr int64_t kOutOfCache = int64_t{256} << 20;

 private:
  const PeakRow* row_;
  std::vector<float> memory_;
  std::map<int, double> flops_;                                // by threads
  std::map<std::tuple<int, Traffic, int64_t>, double> bytes_;  // by threads, kind, working set
};

}  // namespace invar::bench
