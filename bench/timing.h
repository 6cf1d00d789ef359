// How one call is timed on any device: ours and the peer's in turns, and what the machine's limits
// allow.
#pragma once
#include <chrono>
#include <functional>

#include "bench/run.h"
#include "bench/subject.h"

namespace invar::bench {

// The memory traffic of a call for its roofline: bytes at the rate of a copy (read and written),
// and the rest, at the rate of reading or writing alone.
struct Bytes {
  double copied, rest;
  Traffic kind;
  int64_t working_set;
  explicit Bytes(const Subject& s) : working_set(s.working_set()) {
    const auto in = static_cast<double>(s.bytes_read()), out = static_cast<double>(s.bytes_written());
    copied = 2 * std::min(in, out), rest = in + out - copied;
    kind = in > out ? Traffic::read : Traffic::copy;
  }
};

// The item's name and counts, no times.
Row row_of(const Item&, std::string_view isa);

// Fills in the times of a row: samples of ours, `ours(calls)` being seconds per call, and of the
// peer's in turns after a pause (null: no peer). `most_calls`: of a sample.
Status take_turns(Row&, const std::function<Result<double>(int64_t calls)>& ours, Peer*, double seconds,
                  int64_t most_calls, std::chrono::milliseconds pause);

// The roofline bound: the longer of the flops at peak rate and the bytes at the memory's rates.
void bound(Row&, const Bytes&, double flops, double copy, double rest);

}  // namespace invar::bench
