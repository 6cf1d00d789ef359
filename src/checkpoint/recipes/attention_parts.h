// Parts of attention that few families have (spec/decoder.md decoder.25 to decoder.28).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/recipes/decoder.h"
#include "checkpoint/recipes/graph_builder.h"

namespace invar::checkpoint {

// The slopes of attention with linear biases (ALiBi, Press et al. 2022), one a head (decoder.26).
std::vector<float> linear_bias_slopes(int64_t heads, float bias_max, float scale);
// The tensor that every layer adds to its scores: f32 [heads, seq, total].
std::string linear_biases(GraphBuilder&, const Decoder&);

// x [batch, seq, heads, head_dim], each head normed with a weight of its own (decoder.25).
std::string norm_of_heads(GraphBuilder&, const Decoder&, const std::string& name, const std::string& x,
                          int64_t heads);
// x limited to -limit ... limit.
std::string clipped(GraphBuilder&, const std::string& name, const std::string& x, float limit);
// The scale of scores of a layer, which is counted from 0 (decoder.27).
float attention_scale(const Decoder&, size_t layer);

}  // namespace invar::checkpoint
