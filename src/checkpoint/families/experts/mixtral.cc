// Mixtral: Mistral with experts.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_mixtral(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  read_experts(r, d, {.inner = nullptr, .default_count = 8, .default_chosen = 2});
  name_as_mixtral(d.experts.names);
  d.experts.normalized = true;
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  read_rope(r, {.theta = 1000000}, d);
}

}  // namespace invar::checkpoint
