// gpt-oss: sinks of attention, alternating windows, experts with biases and a clamped gate.
#include "checkpoint/families/experts/read_experts.h"

#include "checkpoint/architecture.h"

namespace invar::checkpoint {
namespace {

bool read_mxfp4(ConfigReader& r) {
  const auto* q = r.find("quantization_config");
  if (!q) return false;
  if (!q->is_object() || q->get("quant_method") != "mxfp4")
    r.refuse("'quantization_config' = " + short_text(*q) + " is not covered; the quant_method mxfp4 is");
  return true;
}

}  // namespace

void describe_gpt_oss(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.default_kv_heads = 8, .default_head_dim = 64});
  if (const std::string act = r.text("hidden_act", "silu"); act != "silu")
    r.refuse("'hidden_act' = " + onnx::quote(act) + " is not covered; silu is");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias", true);
  d.attention_sinks = true;
  read_experts(r, d, {"num_local_experts", "num_experts_per_tok", nullptr, 128, 4});
  Experts& e = d.experts;
  e.names.router = "mlp.router";
  e.names.gate_up_stack = "mlp.experts.gate_up_proj";
  e.names.down_stack = "mlp.experts.down_proj";
  e.routing = Routing::softmax_of_chosen;
  e.router_bias = e.bias = true;
  e.layout = ExpertLayout::interleaved;
  e.mxfp4 = read_mxfp4(r);
  e.gate = ExpertGate::clamped;
  e.gate_alpha = read_factor(r, "swiglu_alpha", 1.702);
  e.gate_limit = read_factor(r, "swiglu_limit", 7);
  read_layer_types(r, d, read_window(r, 128), every(2));
  require_rope_object(r, d);
  read_rope(r, {.theta = 150000}, d);
}

}  // namespace invar::checkpoint
