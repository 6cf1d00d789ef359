#include "checkpoint/families/family.h"

#include <algorithm>
#include <map>

#include "checkpoint/architecture.h"

namespace invar::checkpoint {

using json::Value;
using onnx::quote;

// model_type and the function that describes its models, each in a file of this folder.
#define INVAR_FAMILIES(X)                \
  X(llama, llama)                        \
  X(mllama_text_model, mllama)           \
  X(mistral, mistral)                    \
  X(qwen2, qwen2)                        \
  X(qwen3, qwen3)                        \
  X(gemma, gemma)                        \
  X(gemma2, gemma2)                      \
  X(recurrent_gemma, recurrent_gemma)    \
  X(gemma3_text, gemma3)                 \
  X(phi, phi)                            \
  X(phi3, phi3)                          \
  X(smollm3, smollm3)                    \
  X(olmo2, olmo2)                        \
  X(olmo3, olmo3)                        \
  X(granite, granite)                    \
  X(cohere, cohere)                      \
  X(cohere2, cohere2)                    \
  X(stablelm, stablelm)                  \
  X(starcoder2, starcoder2)              \
  X(nemotron, nemotron)                  \
  X(glm, glm)                            \
  X(glm4, glm4)                          \
  X(glm4v_text, glm4v)                   \
  X(ernie4_5, ernie4_5)                  \
  X(hunyuan_v1_dense, hunyuan_dense)     \
  X(minicpm, minicpm)                    \
  X(minicpm3, minicpm3)                  \
  X(youtu, youtu)                        \
  X(deepseek_v2, deepseek_v2)            \
  X(deepseek_v3, deepseek_v3)            \
  X(kimi_k2, deepseek_v3)                \
  X(glm4_moe_lite, glm4_moe_lite)        \
  X(deepseek_v32, deepseek_v32)          \
  X(glm_moe_dsa, glm_moe_dsa)            \
  X(gpt2, gpt2)                          \
  X(gptj, gptj)                          \
  X(codegen, codegen)                    \
  X(gpt_neox, gpt_neox)                  \
  X(opt, opt)                            \
  X(xglm, xglm)                          \
  X(falcon, falcon)                      \
  X(qwen2_moe, qwen2_moe)                \
  X(qwen3_moe, qwen3_moe)                \
  X(mixtral, mixtral)                    \
  X(olmoe, olmoe)                        \
  X(granitemoe, granitemoe)              \
  X(granitemoeshared, granitemoeshared)  \
  X(granitemoehybrid, granitemoehybrid)  \
  X(ernie4_5_moe, ernie4_5_moe)          \
  X(hunyuan_v1_moe, hunyuan_moe)         \
  X(glm4_moe, glm4_moe)                  \
  X(gpt_oss, gpt_oss)                    \
  X(bloom, bloom)                        \
  X(mpt, mpt)                            \
  X(olmo, olmo)                          \
  X(seed_oss, seed_oss)                  \
  X(arcee, arcee)                        \
  X(helium, helium)                      \
  X(internlm2, internlm2)                \
  X(internlm3, internlm3)                \
  X(iquestcoder, iquestcoder)            \
  X(cwm, cwm)                            \
  X(apertus, apertus)                    \
  X(nanochat, nanochat)                  \
  X(jais2, jais2)                        \
  X(exaone, exaone)                      \
  X(exaone4, exaone4)                    \
  X(ministral, ministral)                \
  X(ministral3, ministral3)              \
  X(vaultgemma, vaultgemma)              \
  X(hyperclovax, hyperclovax)            \
  X(flex_olmo, flex_olmo)                \
  X(solar_open, solar_open)              \
  X(dots1, dots1)                        \
  X(exaone_moe, exaone_moe)              \
  X(minimax_m2, minimax_m2)              \
  X(llama4_text, llama4)                 \
  X(mistral4, mistral4)                  \
  X(gemma4_text, gemma4)                 \
  X(phimoe, phimoe)                      \
  X(granite_swa, granite_swa)            \
  X(qwen3_next, qwen3_next)              \
  X(qwen3_5_text, qwen3_5)               \
  X(qwen3_5_moe_text, qwen3_5_moe)       \
  X(olmo_hybrid, olmo_hybrid)            \
  X(lfm2, lfm2)                          \
  X(lfm2_moe, lfm2_moe)                  \
  X(mamba2, mamba2)                      \
  X(bamba, bamba)                        \
  X(falcon_h1, falcon_h1)                \
  X(nemotron_h, nemotron_h)              \
  X(gemma3n_text, gemma3n)               \
  X(kimi_linear, kimi_linear)            \
  X(mamba, mamba)                        \
  X(falcon_mamba, falcon_mamba)          \
  X(jamba, jamba)                        \
  X(afmoe, afmoe)                        \
  X(bitnet, bitnet)                      \
  X(mimo, mimo)                          \
  X(hy_v3, hy_v3)                        \
  X(mellum, mellum)                      \
  X(gpt_bigcode, gpt_bigcode)            \
  X(gpt_neo, gpt_neo)                    \
  X(lfm3, lfm3)                          \
  X(gemma4_unified_text, gemma4_unified) \
  X(cohere2_moe, cohere2_moe)            \
  X(longcat_flash, longcat_flash)        \
  X(sarvam_moe, sarvam_moe)              \
  X(sarvam_mla, sarvam_mla)              \
  X(granitemoe_swa, granitemoe_swa)      \
  X(laguna, laguna)                      \
  X(mimo_v2_flash, mimo_v2_flash)        \
  X(minimax, minimax)                    \
  X(zamba2, zamba2)

#define INVAR_DECLARE(type, function) void describe_##function(ConfigReader&, Decoder&);
#define INVAR_ROW(type, function) {#type, describe_##function},
INVAR_FAMILIES(INVAR_DECLARE)
INVAR_DECLARE(, gpt)  // its model_type is no word of C++

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {INVAR_FAMILIES(INVAR_ROW){"openai-gpt", describe_gpt}};
  return kFamilies;
}

void read_sizes(ConfigReader& r, Decoder& d, const SizeKeys& keys) {
  d.vocab_size = r.size("vocab_size", 0);
  d.hidden_size = r.size(keys.hidden, 0);
  d.heads = r.size(keys.heads, 0);
  if (keys.inner) d.intermediate_size = r.size(keys.inner, 0);
  const bool as_heads = keys.default_kv_heads == 0 || r.is_null(keys.kv_heads);
  d.kv_heads = keys.kv_heads ? r.size(keys.kv_heads, as_heads ? d.heads : keys.default_kv_heads) : d.heads;
  const int64_t layers = r.size(keys.layers, 0);
  const bool has_head_dim = keys.head_dim && (keys.default_head_dim || r.find(keys.head_dim));
  if (d.hidden_size % d.heads != 0 && !has_head_dim)
    r.reject(quote(keys.hidden) + " is not a multiple of " + quote(keys.heads) +
             (keys.head_dim ? ", and there is no " + quote(keys.head_dim) : ""));
  const int64_t usual = std::max<int64_t>(d.hidden_size / d.heads, 1);
  d.head_dim =
      keys.head_dim ? r.size(keys.head_dim, keys.default_head_dim ? keys.default_head_dim : usual) : usual;
  if (d.heads % d.kv_heads != 0)
    r.reject(quote(keys.heads) + " is not a multiple of " +
             quote(keys.kv_heads ? keys.kv_heads : keys.heads));
  if (d.head_dim % 2 != 0)
    r.reject("'head_dim' = " + std::to_string(d.head_dim) + " is odd; rotary embedding needs pairs");
  if (layers > 100000 || d.head_dim > 65536)
    r.reject(quote(keys.layers) + " or 'head_dim' is absurdly large");
  if (r.status()) d.layers.resize(static_cast<size_t>(layers));
  d.attention_scale = default_attention_scale(d.head_dim);
}

void read_activation(ConfigReader& r, Decoder& d, const char* key, const char* fallback) {
  static const std::map<std::string, Activation> names = {
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},
      {"relu2", Activation::relu_squared},
      {"xielu", Activation::xielu},
  };
  const std::string name = r.text(key, fallback);
  const bool own = name == "xielu" && d.family != "apertus";  // it has tensors of its own
  if (auto it = names.find(name); it != names.end() && !own)
    d.activation = it->second;
  else
    r.refuse(quote(key) + " = " + quote(name) +
             " is not covered; silu, gelu, gelu_new, gelu_pytorch_tanh, relu and relu2 are");
}

int64_t read_window(ConfigReader& r, int64_t fallback) {
  if (r.is_null("sliding_window")) return r.find("sliding_window"), 0;
  return r.find("sliding_window") || fallback ? r.size("sliding_window", fallback) : 0;
}

int64_t read_used_window(ConfigReader& r, int64_t fallback) {
  if (r.flag("use_sliding_window")) return read_window(r, fallback);
  return r.find("sliding_window"), 0;
}

void read_layer_types(ConfigReader& r, Decoder& d, int64_t window,
                      const std::function<bool(const Decoder&, size_t)>& windowed) {
  d.window = window;
  const Value* types = r.find("layer_types");
  if (types && (!types->is_array() || types->size() != d.layers.size()))
    return r.reject("'layer_types' is not a list of " + std::to_string(d.layers.size()) + " types");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    if (types && types->items[i] != "full_attention" && types->items[i] != "sliding_attention")
      return r.refuse("'layer_types': " + short_text(types->items[i]) +
                      " is not covered; full_attention and sliding_attention are");
    d.layers[i].window = types ? types->items[i] == "sliding_attention" : windowed(d, i);
    if (d.layers[i].window && window == 0)
      return r.reject("layers have a window, but there is no 'sliding_window'");
  }
}

std::function<bool(const Decoder&, size_t)> every(int64_t pattern) {
  return [pattern](const Decoder&, size_t i) { return (i + 1) % static_cast<size_t>(pattern) != 0; };
}

void ignore_heads_for_more_tokens(ConfigReader& r, Decoder& d, const char* beginning) {
  r.find("num_nextn_predict_layers");
  d.names.ignored_begins.push_back(beginning);
}

void read_unrotated_layers(ConfigReader& r, Decoder& d) {
  const auto rotates = every(r.size("no_rope_layer_interval", 4));
  const Value* listed = r.find("no_rope_layers");  // 1: the layer rotates
  if (listed && (!listed->is_array() || listed->size() != d.layers.size()))
    return r.reject("'no_rope_layers' is not a list of " + std::to_string(d.layers.size()) + " numbers");
  for (size_t i = 0; i < d.layers.size(); ++i)
    d.layers[i].rope = (listed ? listed->items[i] != 0 : rotates(d, i)) ? 0 : -1;
}

const char* either(ConfigReader& r, const char* released, const char* newer) {
  const Value *a = r.find(released), *b = r.find(newer);
  if (a && b && *a != *b)
    r.reject(quote(released) + " and " + quote(newer) + " are the same key and disagree");
  return b && !a ? newer : released;
}

float read_factor(ConfigReader& r, const char* key, double fallback) {
  return static_cast<float>(r.positive(key, fallback));
}

float read_softcap(ConfigReader& r, const char* key, double fallback) {
  if (r.is_null(key) || fallback == 0) return static_cast<float>(r.optional(key));
  return static_cast<float>(r.positive(key, fallback));
}

void read_llama_like(ConfigReader& r, Decoder& d, const SizeKeys& keys, double epsilon) {
  read_sizes(r, d, keys);
  read_activation(r, d, "hidden_act", "silu");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", epsilon);
}

}  // namespace invar::checkpoint
