// BitNet b1.58: ternary matrices, rows rounded to 8 bits before them, squared ReLU, norms before
// the last matrices of attention and MLP.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_bitnet(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.default_kv_heads = 5});
  read_activation(r, d, "hidden_act", "relu2");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.names.attention_sub_norm = "self_attn.attn_sub_norm";
  d.names.mlp_sub_norm = "ffn_sub_norm";
  read_rope(r, {.theta = 500000}, d);
  r.find("auto_map");  // of the code before transformers had the family
  const json::Value* how = r.find("quantization_config");
  if (!how) return;
  ConfigReader inner(*how, r.where() + ": quantization_config");
  const auto require = [&](const char* key, const char* absent, std::initializer_list<const char*> values) {
    const std::string value = inner.text(key, absent);
    for (const char* one : values)
      if (value == one) return value;
    inner.refuse(onnx::quote(key) + " = " + onnx::quote(value) + " is not covered");
    return value;
  };
  require("quant_method", "bitnet", {"bitnet"});
  const std::string kind = require("linear_class", "bitlinear", {"bitlinear", "autobitlinear"});
  require("quantization_mode", "offline", {"offline"});
  inner.require_neutral("use_rms_norm");
  if (const json::Value* kept = inner.find("modules_to_not_convert");
      kept && *kept != json::list({"lm_head"}) && !kept->empty())
    inner.refuse("'modules_to_not_convert' other than lm_head is not covered");
  if (!inner.status()) return r.fail(inner.status().error());
  d.ternary = kind == "bitlinear" ? Ternary::divided : Ternary::multiplied;
}

}  // namespace invar::checkpoint
