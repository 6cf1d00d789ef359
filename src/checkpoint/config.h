// The validated config.json of a Llama checkpoint. A setting that would change results and is not
// supported is refused by name (spec/checkpoint.md onnx.4).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "checkpoint/recipes/rope_frequencies.h"

namespace invar::checkpoint {

struct LlamaConfig {
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0, max_positions = 0;
  float rms_norm_eps = 0;
  bool tied = false, attention_bias = false, mlp_bias = false;
  RopeParameters rope;
  std::map<std::string, std::string> metadata;  // for the model's metadata_props
};

// Reads FOLDER/config.json and, for the end-of-text ids, FOLDER/generation_config.json if present.
Result<LlamaConfig> read_config(const std::string& folder);

}  // namespace invar::checkpoint
