// Reads the keys that Gemma 2 and later share.
#pragma once

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

// Sizes, norms, activation and scale of the embedding.
void read_second_gemma(ConfigReader&, Decoder&,
                       const SizeKeys& = {.default_kv_heads = 4, .default_head_dim = 256});
// num_kv_shared_layers: the last layers, which use the keys and values of the last layer before
// them of their kind.
void read_shared_keys(ConfigReader&, Decoder&, int64_t fallback);

}  // namespace invar::checkpoint
