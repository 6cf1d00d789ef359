// Who watches work on many bytes, such as hashing weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace invar {

using ByteProgress = std::function<void(uint64_t done, uint64_t total)>;

// Counts what several threads have done. The one thread that may report does so.
class ByteMeter {
 public:
  ByteMeter(const ByteProgress& report, uint64_t total) : report_(report), total_(total) {}
  void add(uint64_t bytes, bool may_report) {
    const uint64_t done = done_.fetch_add(bytes) + bytes;
    if (may_report && report_) report_(done, total_);
  }

 private:
  const ByteProgress& report_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
};

}  // namespace invar
