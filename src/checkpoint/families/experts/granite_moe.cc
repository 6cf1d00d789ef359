// Granite 3 with experts, without and with a shared one, with windows; and Granite 4: with experts
// or with the shared one alone, with attention and state-space layers.
#include <algorithm>

#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

void describe_granite(ConfigReader&, Decoder&);
void read_granite_windows(ConfigReader&, Decoder&);

namespace {

void read_granite_experts(ConfigReader& r, Decoder& d) {
  if (d.mlp_bias) r.refuse("'mlp_bias' = true is not covered");
  read_experts(r, d, {.inner = nullptr, .default_count = 8, .default_chosen = 2});
  Experts& e = d.experts;
  e.names.router = "block_sparse_moe.router.layer";
  e.names.gate_up_stack = "block_sparse_moe.input_linear.weight";
  e.names.down_stack = "block_sparse_moe.output_linear.weight";
  e.layout = ExpertLayout::stacked;
  e.routing = Routing::softmax_of_chosen;
}

void read_granite_shared(ConfigReader& r, Decoder& d) {
  ExpertNames& n = d.experts.names;
  n.shared = "shared_mlp.", n.shared_gate_up = "input_linear", n.shared_down = "output_linear";
  d.fused_gate_up = true;
  d.experts.shared_intermediate_size = read_count(r, "shared_intermediate_size", 0);
}

}  // namespace

void describe_granitemoe(ConfigReader& r, Decoder& d) {
  describe_granite(r, d);
  read_granite_experts(r, d);
}

void describe_granitemoeshared(ConfigReader& r, Decoder& d) {
  describe_granitemoe(r, d);
  read_granite_shared(r, d);
}

void describe_granitemoe_swa(ConfigReader& r, Decoder& d) {
  describe_granitemoeshared(r, d);
  read_granite_windows(r, d);
  ExpertNames& n = d.experts.names;
  n.router = "block_sparse_moe.router";
  n.gate_up_stack = "block_sparse_moe.experts.gate_up_proj";
  n.down_stack = "block_sparse_moe.experts.down_proj";
}

void describe_granitemoehybrid(ConfigReader& r, Decoder& d) {
  if (read_count(r, "num_local_experts", 8) > 0) {
    describe_granitemoeshared(r, d);
  } else {
    describe_granite(r, d);
    if (d.mlp_bias) r.refuse("'mlp_bias' = true is not covered");
    d.intermediate_size = r.size("shared_intermediate_size", 1024);
    d.fused_gate_up = true;
    d.names.gate_up = "shared_mlp.input_linear", d.names.down = "shared_mlp.output_linear";
  }
  for (Layer& layer : d.layers) layer.mixer = Mixer::state_space;
  const char* key = r.find("layer_types") ? "layer_types" : "layers_block_type";
  if (const json::Value* types = r.find(key))
    read_mixers(r, d, key, *types,
                {{"attention", Mixer::attention},
                 {"full_attention", Mixer::attention},
                 {"mamba", Mixer::state_space},
                 {"linear_attention", Mixer::state_space}});
  if (std::ranges::any_of(d.layers, [](const Layer& l) { return l.mixer == Mixer::state_space; })) {
    read_state_space(r, d, r.size("mamba_expand", 2) * d.hidden_size);
    read_time_step_limit(r, d);
  }
  const std::string positions = r.text("position_embedding_type", "nope");
  if (positions == "rope") return;
  if (positions != "nope")
    r.refuse("'position_embedding_type' = " + onnx::quote(positions) + " is not covered; rope and nope are");
  d.ropes.clear(), d.rotary_dim = 0;
}

}  // namespace invar::checkpoint
