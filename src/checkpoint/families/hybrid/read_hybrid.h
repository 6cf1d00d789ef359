// Reads the keys that families with layers of the gated delta rule share.
#pragma once

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

// layer_types, or where it is absent the layers for which `recurrent` is true -> mixers of layers.
void read_mixers(ConfigReader&, Decoder&, const std::function<bool(size_t layer)>& recurrent);
// linear_conv_kernel_dim, and what all of these layers ask of the others. Needs the sizes of delta
// and norm_epsilon.
void read_delta(ConfigReader&, Decoder&);

}  // namespace invar::checkpoint
