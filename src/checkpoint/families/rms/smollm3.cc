// SmolLM3: Llama, some layers of which do not rotate queries and keys.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_smollm3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4});
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  const int64_t interval = r.size("no_rope_layer_interval", 4);
  const auto* rotated = r.find("no_rope_layers");  // 1: the layer rotates
  if (rotated && (!rotated->is_array() || rotated->size() != d.layers.size()))
    return r.reject("'no_rope_layers' is not a list of " + std::to_string(d.layers.size()) + " numbers");
  for (size_t i = 0; i < d.layers.size(); ++i)
    d.layers[i].rope =
        (rotated ? rotated->items[i] != 0 : (i + 1) % static_cast<size_t>(interval) != 0) ? 0 : -1;
  read_layer_types(r, d, read_used_window(r, 0), [](const Decoder& decoder, size_t i) {
    return decoder.window != 0 && decoder.layers[i].rope < 0;
  });
  read_rope(r, {.theta = 2000000}, d);
}

}  // namespace invar::checkpoint
