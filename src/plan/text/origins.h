// Reads the "origin" lines of a plan (plan.17), which name nodes by their numbers in the text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "plan/text/cursor.h"

namespace invar::plan {

class OriginReader {
 public:
  // Registers the next node of the text by its position in a body, or in the program (-1).
  void add_node(int body, size_t position) { nodes_.emplace_back(body, position); }
  void read(Cursor& c, Plan& p) {
    const uint64_t number = c.natural();
    c.expect(" ");
    Origin origin;
    origin.op = c.string();
    c.expect(" ");
    origin.name = c.string();
    c.expect_end();
    if (c.ok() && number >= nodes_.size()) c.fail("there is no node " + std::to_string(number));
    if (c.ok() && number < next_) c.fail("origins are not in the order of the nodes");
    if (!c.ok()) return;
    next_ = number + 1;
    const auto [body, position] = nodes_[number];
    (body < 0 ? p.nodes : p.bodies[static_cast<size_t>(body)].nodes)[position].origin = std::move(origin);
  }

 private:
  std::vector<std::pair<int, size_t>> nodes_;
  uint64_t next_ = 0;  // the first node that may still have one
};

}  // namespace invar::plan
