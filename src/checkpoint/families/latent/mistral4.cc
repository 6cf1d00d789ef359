// Mistral 4: the attention of DeepSeek-V3, queries that grow with their positions, softmax routing.
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

void describe_mistral4(ConfigReader& r, Decoder& d) {
  require_rope_object(r, d);
  read_latent(r, d, {1024, 256, 64, 64, 128, 32, 1e-6, false, true});
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = r.flag("rope_interleave", true);
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 128, 4, 2048});
  read_first_dense(r, d, 0);
  read_sigmoid_routing(r, d, 1, 1, 1);
  d.experts.routing = Routing::softmax;
  d.experts.correction_bias = false;
  d.experts.layout = ExpertLayout::stacked;
  d.experts.names.gate_up_stack = "mlp.experts.gate_up_proj";
  d.experts.names.down_stack = "mlp.experts.down_proj";
  d.unused_layers = 0;
}

}  // namespace invar::checkpoint
