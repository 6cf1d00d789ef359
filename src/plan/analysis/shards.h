// Divides a plan among ranks by whole results (tensor parallelism): columns of linear layers, heads
// of attention. The result is a plan again: what each rank computes, and where their parts are
// joined.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace invar::plan {

struct Shards {
  // The nodes of all ranks. Values of the whole plan keep their numbers where rank 0, or every
  // rank, has them whole. Slices of weights have no digest.
  Plan plan;
  std::vector<int> rank_of, node_of;     // per node: its rank, and its node in the whole plan
  std::vector<int> value_of;             // per value: its value in the whole plan
  std::vector<int> join_of;              // per node: its number in `makers`; -1: it joins nothing
  std::vector<std::vector<int>> makers;  // per join: the ranks whose parts its operands are
};

// Every operation is divided by its rule (analysis/split_rules.h), or computed by each rank that
// needs it; one that looks rows of a weight up by rank 0. bad_input: the heads of an attention
// cannot be shared among so many. not_covered: nothing can be divided, or control flow.
// in_step: every join has a node on every rank, in one order, and ranks read from each other
// through these nodes alone. not_covered: some part has elements that are no whole words.
Result<Shards> shard(const Plan&, int ranks, bool in_step = false);

// Whether a node's other operands are all integers: it looks rows of its weights up.
bool looks_up(const Plan&, const Node&);

}  // namespace invar::plan
