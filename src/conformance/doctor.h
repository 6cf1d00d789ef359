// `invar doctor`: whether this machine, with this build, computes what the specification says.
// Every row runs on the chosen vectors and golden digests; rows are not compared with each other,
// so a wrong one cannot hide another.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "conformance/rooms.h"

namespace invar::conformance {

struct Finding {
  ops::KernelRef row;
  std::string text;    // the case
  std::string what;    // the difference
  bool stable = true;  // false: repeating the computation gave different bits
};
struct Examination {
  std::map<ops::KernelRef, int64_t> checks;  // cases per row
  std::vector<Finding> findings;             // in the order of the rooms
  int64_t wrong(ops::KernelRef) const;       // findings of this row
  void add(Examination);                     // appends a later one
};

// rows: those that this processor can run. Rooms without any of them are skipped.
// `progress`: how many cases are done, on the calling thread.
using CaseProgress = std::function<void(size_t done, size_t total)>;
Examination examine(std::span<const ops::KernelRef> rows, std::span<const Room> rooms, Pool&,
                    const CaseProgress& progress = {});

// One line on what the findings of a row suggest.
std::string suspicion(const Examination&, ops::KernelRef);

}  // namespace invar::conformance
