// Phi-3, Phi-3.5 and Phi-4: Llama with fused projections.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_phi3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_layout = QkvLayout::concatenated;
  d.fused_gate_up = true;
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  r.find("original_max_position_embeddings");  // of longrope alone
  read_rope(r, {.partial = 1, .longrope = true, .scaled = false}, d);
}

}  // namespace invar::checkpoint
