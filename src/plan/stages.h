// Splits a decoder by layers into stages, for partitions (src/run/partitions). A stage is a plan of
// its own with its own weights and states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace invar::plan {

// What a stage needs. The time of a token is estimated by the products: a step computes them, and
// reads the weights they belong to.
struct StageCost {
  uint64_t weights = 0;      // bytes; a weight that several stages read counts in each
  uint64_t products = 0;     // elements of weights that every token is multiplied with
  uint64_t read = 0;         // bytes of those weights
  uint64_t state = 0;        // bytes that a token adds to the states, if they hold its operands
  uint64_t handed_over = 0;  // bytes of a token's values that later stages read
};

struct Stage {
  Segment segment;
  int first_layer = 0, layers = 0;
  StageCost cost;
  // The outputs of the segment's plan that states of later stages depend on.
  std::vector<int> feeding_outputs;
};

// The layers of a decoder: between two nodes with a state it is cut where fewest values are alive.
// not_covered: the plan has no states, or control flow or computed sizes.
Result<int> layer_count(const Plan&);
// Cuts a decoder into `count` stages of whole layers. Of all cuts the one with the smallest largest
// share of any stage, of the weights' bytes or of the products; of equals the most even one, then
// that with the earliest boundaries. bad_input: fewer layers than stages.
Result<std::vector<Stage>> split_by_layers(const Plan&, int count);

// A line per stage: layers, bytes, and the time of a token and of a prompt's token at the given
// speeds of memory and of arithmetic.
struct StageSpeed {
  double bytes_per_second = 1e12, products_per_second = 1e13;
};
std::string stage_report(const std::vector<Stage>&, const StageSpeed&);

}  // namespace invar::plan
