// A checkpoint with an adapter merged into its weights (spec/weights.md weights.26).
#pragma once

#include <string>

#include "base/status.h"
#include "checkpoint/adapter/adapter.h"
#include "checkpoint/folder.h"

namespace invar::checkpoint {

// Writes the files of `base` to the folder OUT, which is new or empty, with the weights that the
// adapter changes. `placed`: the same checkpoint with the adapter's tensors, whose graph was built.
// turned: its linear weights are stored [in, out], but for `head`. not_covered: a weight is packed,
// or the table of logits is also that of tokens.
Status write_merged(const Checkpoint& base, const Checkpoint& placed, bool turned, const std::string& head,
                    const std::string& out);

}  // namespace invar::checkpoint
