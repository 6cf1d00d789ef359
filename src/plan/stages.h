// Splits a decoder by layers into stages, for partitions (src/run/partitions). A stage is a plan of
// its own with its own weights and states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace invar::plan {

// The needs of a stage. The time of a token is estimated by the products: a step computes them, and
// reads the weights they belong to.
struct StageCost {
  uint64_t weights = 0;      // bytes; a weight that several stages read counts in each
  uint64_t products = 0;     // elements of weights that every token is multiplied with
  uint64_t read = 0;         // bytes of those weights
  uint64_t state = 0;        // bytes of states for every token of a sequence (run::measure_states)
  uint64_t fixed_state = 0;  // bytes of states for a sequence, whatever its length (the same)
  uint64_t handed_over = 0;  // bytes of a token's values that later stages read
};

// A node of a stage that puts together what the ranks of its partition make, within the step. All
// of them have it, as the same of their joins.
struct Join {
  int node;                 // of the segment's plan
  std::vector<int> makers;  // per operand: the rank that makes it; those of others are inputs
};

struct Stage {
  Segment segment;
  int first_layer = 0, layers = 0;
  // Its partition, and of several ranks that which runs it (analysis/shards.h). A rank has a stage
  // for each stretch of a partition that it computes without parts of the others.
  int partition = 0, rank = 0;
  // The number of each value in the whole plan, for people, where there are several ranks; weights
  // may be slices then, whose digests are not known.
  std::vector<int> value_numbers{};
  StageCost cost;
  // The outputs of the segment's plan, and results of joins, that states of other stages depend on.
  std::vector<int> feeding_outputs;
  std::vector<Join> joins;  // where ranks join within the step
};

// The layers of a decoder: between two nodes with a state it is cut where fewest values are alive.
// not_covered: the plan has no states, or control flow or computed sizes.
Result<int> layer_count(const Plan&);
// Cuts a decoder into `count` stages of whole layers. Of all cuts the one with the smallest largest
// share of any stage, of the weights' bytes or of the products; of equals the most even one, then
// that with the earliest boundaries. bad_input: fewer layers than stages.
Result<std::vector<Stage>> split_by_layers(const Plan&, int count);
// The same, and divides every partition among so many ranks. A stage reads from the ones before it
// alone; segments' values are then those of shard(), whose first ones are the plan's.
// in_step: a rank has one stage of each partition, which joins within the step. not_covered: see
// shard().
Result<std::vector<Stage>> split(const Plan&, int partitions, int ranks, bool in_step = false);

// The needs of a rank of a partition in all its stages.
struct RankCost {
  int partition = 0, rank = 0, first_layer = 0, layers = 0;
  StageCost cost{};
  int gathers = 0;  // how often it waits for parts of the others
};
std::vector<RankCost> rank_costs(const std::vector<Stage>&);

// A line for each: layers, bytes, and the time of a token and of a prompt's token at the given
// speeds of memory and of arithmetic.
struct StageSpeed {
  double bytes_per_second = 1e12, products_per_second = 1e13;
};
std::string stage_report(const std::vector<RankCost>&, const StageSpeed&);

}  // namespace invar::plan
