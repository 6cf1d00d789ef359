// Granite 3 with experts, without and with a shared one.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_granite(ConfigReader&, Decoder&);

void describe_granitemoe(ConfigReader& r, Decoder& d) {
  describe_granite(r, d);
  if (d.mlp_bias) r.refuse("'mlp_bias' = true is not covered");
  read_experts(r, d, {.inner = nullptr, .default_count = 8, .default_chosen = 2});
  Experts& e = d.experts;
  e.names.router = "block_sparse_moe.router.layer";
  e.names.gate_up_stack = "block_sparse_moe.input_linear.weight";
  e.names.down_stack = "block_sparse_moe.output_linear.weight";
  e.layout = ExpertLayout::stacked;
  e.routing = Routing::softmax_of_chosen;
}

void describe_granitemoeshared(ConfigReader& r, Decoder& d) {
  describe_granitemoe(r, d);
  ExpertNames& n = d.experts.names;
  n.shared = "shared_mlp.", n.shared_gate_up = "input_linear", n.shared_down = "output_linear";
  d.fused_gate_up = true;
  d.experts.shared_intermediate_size = read_count(r, "shared_intermediate_size", 0);
}

}  // namespace invar::checkpoint
