// Lines of origins (plan.17) as they are read: behind the places, of nodes by their numbers in the order of the text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/text/cursor.h"
#include "plan/plan.h"

namespace invar::plan {

class Origins {
 public:
  // The next node of the text: in a body, or -1.
  void number(int body, size_t place) { nodes_.emplace_back(body, place); }
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
    const auto [body, place] = nodes_[number];
    (body < 0 ? p.nodes : p.bodies[static_cast<size_t>(body)].nodes)[place].origin = std::move(origin);
  }

 private:
  std::vector<std::pair<int, size_t>> nodes_;
  uint64_t next_ = 0;  // the first node that may still have one
};

}  // namespace invar::plan
