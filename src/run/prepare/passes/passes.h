// The passes of prepare(), each in the file of its name. On a GPU the passes that serve the host's
// kernels alone do nothing.
#pragma once

#include "run/prepare/prepare.h"

namespace invar::run {

// Names the sizes that the plan's symbols take from a step, and refuses what no step can hold.
Status bind_symbols(Executable&, const Target&);
// Selects a kernel for every node.
Status select_kernels(Executable&, const Target&);
// Marks the nodes that some state depends on: they run in steps without tail.
Status mark_feeds_state(Executable&, const Target&);
// Marks the nodes whose results depend on weights alone.
Status mark_constants(Executable&, const Target&);
// Finds results that can be views of an operand, in all steps or in some.
Status alias_views(Executable&, const Target&);
// Fuses pointwise nodes into the epilogue of the kernel before them; on a GPU, an addition.
Status fuse_epilogues(Executable&, const Target&);
// GPU: runs what makes the rows of products in the products' kernels, which get them rounded.
Status fuse_prologues(Executable&, const Target&);
// GPU: runs neighbouring elementwise operations as one kernel.
Status fuse_chains(Executable&, const Target&);
// Gives every value a buffer; drops views that would keep much more memory alive.
Status plan_memory(Executable&, const Target&);
// Host: keeps values channels last between kernels that have such a variant.
Status assign_layouts(Executable&, const Target&);
// Marks nodes that may run concurrently with those before them.
Status mark_concurrent(Executable&, const Target&);

}  // namespace invar::run
