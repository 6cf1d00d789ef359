// SmolLM3: Llama, some layers of which do not rotate queries and keys.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_smollm3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4});
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  read_unrotated_layers(r, d);
  read_layer_types(r, d, read_used_window(r, 0), [](const Decoder& decoder, size_t i) {
    return decoder.window != 0 && decoder.layers[i].rope < 0;
  });
  read_rope(r, {.theta = 2000000}, d);
}

}  // namespace invar::checkpoint
