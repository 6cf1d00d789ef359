// Mistral 7B and those of its form: Llama with a window in every layer; Ministral, where some have
// one; Ministral 3, whose queries grow with their positions.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_mistral(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8});
  d.tied = r.flag("tie_word_embeddings");
  d.window = read_window(r, 4096);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  read_rope(r, {}, d);
}

void describe_ministral(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8});
  d.tied = r.flag("tie_word_embeddings");
  read_layer_types(r, d, read_window(r, 4096), [](const Decoder& m, size_t) { return m.window != 0; });
  read_rope(r, {}, d);
}

void describe_ministral3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8, .default_head_dim = r.is_null("head_dim") ? 0 : 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  require_rope_object(r, d);
  read_rope(r, {.theta = 1000000, .temperature = true}, d);
}

}  // namespace invar::checkpoint
