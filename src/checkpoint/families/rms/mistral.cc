// Mistral 7B and those of its form: Llama with a window in every layer.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_mistral(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8});
  d.tied = r.flag("tie_word_embeddings");
  d.window = read_window(r, 4096);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
