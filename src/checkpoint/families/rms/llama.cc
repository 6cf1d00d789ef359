// Llama 1 to 3 (spec/llama.md).
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_llama(ConfigReader& r, Decoder& d) {
  const std::string act = r.text("hidden_act", "silu");
  if (act != "silu") r.refuse("hidden_act " + onnx::quote(act) + " is not covered; only 'silu' is");
  read_sizes(r, d);
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-6);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
