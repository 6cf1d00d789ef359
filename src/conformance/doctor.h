// `invar doctor`: does this machine, with this build, compute what the specification says? Every row on the chosen
// vectors and the golden digests; nothing is compared with another row, so one that is wrong cannot hide another.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "conformance/rooms.h"

namespace invar::conformance {

struct Finding {
  const ops::Kernel* row;
  std::string text;    // the case
  std::string what;    // the difference
  bool stable = true;  // false: the same computation gave other bits the second time
};
struct Examination {
  std::map<const ops::Kernel*, int64_t> checks;  // cases per row
  std::vector<Finding> findings;                 // in the order of the rooms
  int64_t wrong(const ops::Kernel&) const;       // findings of this row
  void add(Examination);                         // one that was made after this
};

// rows: those that this processor can run. Rooms without a row among them are passed over.
Examination examine(std::span<const ops::Kernel* const> rows, std::span<const Room> rooms, Pool&);

// What the findings of a row suggest, in one line.
std::string suspicion(const Examination&, const ops::Kernel&);

}  // namespace invar::conformance
