// The activation of an MLP as nodes (spec/decoder.md decoder.9), of decoders and encoders.
#pragma once

#include <string>

#include "checkpoint/recipes/decoder.h"
#include "checkpoint/recipes/graph_builder.h"

namespace invar::checkpoint {

// The number below which `part` of a standard normal distribution lies, 0 < part < 1, within
// 10^-12, rounded to binary32 (decoder.68).
float normal_quantile(double part);

// Names of nodes begin with `prefix`.
std::string activated(GraphBuilder&, Activation, const std::string& prefix, const std::string& x);

}  // namespace invar::checkpoint
