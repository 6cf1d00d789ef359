// The machine's limits: fused multiply-adds per second in registers, bytes read and copied per second for a working
// set of a given size (caches and memory alike), on 1 ... N threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "base/pool.h"

namespace invar::bench {

// Compiled once per instruction set over num/lane (peak_lanes.cc).
struct PeakRow {
  std::string_view isa;
  int64_t flops_per_round;  // of fma()
  // `rounds` rounds of independent chains of fused multiply-adds; the result keeps them from being dropped.
  float (*fma)(int64_t rounds);
  // Reads n floats (a multiple of 256) and keeps a bit of each.
  uint32_t (*read)(const float* x, int64_t n);
  void (*copy)(float* to, const float* from, int64_t n);
};
std::span<const PeakRow* const> peak_rows();

enum class Traffic { read, copy };

// Measured when first asked for and kept; best of several trials, since a limit is what the machine can do.
class Peaks {
 public:
  explicit Peaks(
      std::string_view isa);  // an instruction set without lanes of its own ("reference") uses scalar's
  double flops(Pool&);        // per second
  // Bytes per second, reads and writes both counted, for a working set of about this many bytes.
  double bytes(Pool&, Traffic, int64_t working_set);
  std::string_view isa() const { return row_->isa; }
  static constexpr int64_t kOutOfCache = int64_t{512} << 20;

 private:
  const PeakRow* row_;
  std::map<int, double> flops_;                                // by threads
  std::map<std::tuple<int, Traffic, int64_t>, double> bytes_;  // by threads, kind, working set
};

}  // namespace invar::bench
