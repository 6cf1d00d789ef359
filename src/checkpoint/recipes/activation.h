// The activation of an MLP as nodes (spec/decoder.md decoder.9), of decoders and encoders.
#pragma once

#include <string>

#include "checkpoint/recipes/decoder.h"
#include "checkpoint/recipes/graph_builder.h"

namespace invar::checkpoint {

// Names of nodes begin with `prefix`.
std::string activated(GraphBuilder&, Activation, const std::string& prefix, const std::string& x);

}  // namespace invar::checkpoint
