// The tensors of a GGUF file by the names of transformers (spec/weights.md weights.13).
#include <algorithm>
#include <charconv>
#include <span>

#include "checkpoint/gguf/gguf_model.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using onnx::quote;

struct GgufName {
  std::string_view architecture;  // "": any
  std::string_view from, to;      // without .weight and .bias
};
// Rows of one architecture come before those of any.
constexpr GgufName kWholeNames[] = {{"", "per_layer_token_embd", "model.embed_tokens_per_layer"},
                                    {"", "per_layer_model_proj", "model.per_layer_model_projection"},
                                    {"", "per_layer_proj_norm", "model.per_layer_projection_norm"},
                                    {"", "token_embd", "model.embed_tokens"},
                                    {"", "output_norm", "model.norm"},
                                    {"", "output", "lm_head"}};
constexpr GgufName kLayerNames[] = {
    {"phi3", "ffn_up", "mlp.gate_up_proj"},
    {"phi3", "attn_qkv", "self_attn.qkv_proj"},
    {"gemma2", "ffn_norm", "pre_feedforward_layernorm"},
    {"gemma3", "ffn_norm", "pre_feedforward_layernorm"},
    {"gemma4", "ffn_norm", "pre_feedforward_layernorm"},
    {"gemma4", "ffn_gate_inp", "router.proj"},
    {"gemma4", "ffn_gate_up_exps", "experts.gate_up_proj"},
    {"gemma4", "ffn_down_exps", "experts.down_proj"},
    {"deepseek2", "attn_q_a", "self_attn.q_a_proj"},
    {"deepseek2", "attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"deepseek2", "attn_q_b", "self_attn.q_b_proj"},
    {"deepseek2", "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"deepseek2", "attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"deepseek2", "attn_kv_b", "self_attn.kv_b_proj"},
    {"deepseek2", "exp_probs_b", "mlp.gate.e_score_correction_bias"},
    {"deepseek2", "ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"deepseek2", "ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"deepseek2", "ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"", "ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
    {"", "layer_output_scale", "layer_scalar"},
    {"", "inp_gate", "per_layer_input_gate"},
    {"", "proj", "per_layer_projection"},
    {"", "post_norm", "post_per_layer_input_norm"},
    {"", "pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"", "post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"", "post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"", "post_attention_norm", "post_attention_layernorm"},
    {"", "post_ffw_norm", "post_feedforward_layernorm"},
    {"", "attn_norm", "input_layernorm"},
    {"", "attn_q", "self_attn.q_proj"},
    {"", "attn_k", "self_attn.k_proj"},
    {"", "attn_v", "self_attn.v_proj"},
    {"", "attn_qkv", "linear_attn.in_proj_qkv"},
    {"", "attn_gate", "linear_attn.in_proj_z"},
    {"", "ssm_alpha", "linear_attn.in_proj_a"},
    {"", "ssm_beta", "linear_attn.in_proj_b"},
    {"", "ssm_ba", "linear_attn.in_proj_ba"},
    {"", "ssm_a", "linear_attn.A"},
    {"", "ssm_dt", "linear_attn.dt_bias"},
    {"", "ssm_conv1d", "linear_attn.conv1d"},
    {"", "ssm_norm", "linear_attn.norm"},
    {"", "ssm_out", "linear_attn.out_proj"},
    {"", "attn_output", "self_attn.o_proj"},
    {"", "attn_q_norm", "self_attn.q_norm"},
    {"", "attn_k_norm", "self_attn.k_norm"},
    {"", "ffn_norm", "post_attention_layernorm"},
    {"", "ffn_gate", "mlp.gate_proj"},
    {"", "ffn_up", "mlp.up_proj"},
    {"", "ffn_down", "mlp.down_proj"},
    {"llama", "ffn_gate_inp", "block_sparse_moe.gate"},
    {"gpt-oss", "ffn_gate_inp", "mlp.router"},
    {"gpt-oss", "attn_sinks", "self_attn.sinks"},
    {"", "ffn_gate_inp", "mlp.gate"},
    {"", "ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"", "ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"", "ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"", "ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
};
// Stacks of experts: # is the number of one.
constexpr GgufName kExpertNames[] = {
    {"llama", "ffn_gate_exps", "block_sparse_moe.experts.#.w1"},
    {"llama", "ffn_up_exps", "block_sparse_moe.experts.#.w3"},
    {"llama", "ffn_down_exps", "block_sparse_moe.experts.#.w2"},
    {"", "ffn_gate_exps", "mlp.experts.#.gate_proj"},
    {"", "ffn_up_exps", "mlp.experts.#.up_proj"},
    {"", "ffn_down_exps", "mlp.experts.#.down_proj"},
};
// Tensors that gguf_config() has read.
constexpr std::string_view kTables[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                        "rope_factors_short.weight"};

std::string_view renamed(std::span<const GgufName> names, std::string_view architecture,
                         std::string_view from) {
  for (const GgufName& n : names)
    if (n.from == from && (n.architecture.empty() || n.architecture == architecture)) return n.to;
  return "";
}

// Tensors of a layer whose names in a checkpoint have no ending.
constexpr std::string_view kBare[] = {"linear_attn.A",
                                      "linear_attn.dt_bias",
                                      "layer_scalar",
                                      "experts.gate_up_proj",
                                      "experts.down_proj",
                                      "mlp.experts.gate_up_proj",
                                      "mlp.gate.e_score_correction_bias"};
// Scales of Gemma 4 beside a matrix of this name.
constexpr GgufName kScaleNames[] = {{"gemma4", "ffn_gate_inp", "router.scale"},
                                    {"gemma4", "ffn_down_exps", "router.per_expert_scale"}};

// The name of `from` in a checkpoint, with # for an expert; "" where it has none.
std::string family_name(std::string_view architecture, std::string_view full) {
  const std::string name(full.ends_with(".ssm_a") ? std::string(full) + ".weight" : std::string(full));
  const size_t end = name.rfind('.');
  if (end == name.npos) return "";
  const std::string_view ending = std::string_view(name).substr(end);
  const bool scale = ending == ".scale";
  if (ending != ".weight" && ending != ".bias" && !scale) return "";
  std::string_view from = std::string_view(name).substr(0, end);
  if (!from.starts_with("blk.")) {
    const std::string_view to = renamed(kWholeNames, architecture, from);
    return to.empty() ? "" : std::string(to) + std::string(ending);
  }
  from.remove_prefix(4);
  const size_t dot = from.find('.');
  uint32_t layer = 0;
  const std::string_view digits = from.substr(0, dot);
  const auto number = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  if (dot == from.npos || number.ec != std::errc() || number.ptr != digits.data() + digits.size()) return "";
  const std::string_view part = from.substr(dot + 1);
  std::string_view to =
      scale ? renamed(kScaleNames, architecture, part) : renamed(kLayerNames, architecture, part);
  if (to.empty() && !scale) to = renamed(kExpertNames, architecture, part);
  if (to.empty()) return "";
  const bool bare = scale || std::ranges::count(kBare, to) != 0;
  return "model.layers." + std::to_string(layer) + "." + std::string(to) + (bare ? "" : std::string(ending));
}

// Rates and decays of Qwen3-Next in one matrix: behind a head of keys the rates of the heads of
// values that it serves, then their decays.
Status split_rates(const Gguf& g, const std::string& architecture, const std::string& to,
                   const GgufSource& both, std::map<std::string, GgufSource>& out) {
  const auto size = [&](const char* key) -> int64_t {
    const GgufValue* v = g.find(architecture + key);
    return v && v->size() ? static_cast<int64_t>(*v->size()) : 0;
  };
  const int64_t keys = size(".ssm.group_count"), values = size(".ssm.time_step_rank");
  if (keys <= 0 || values <= 0 || values % keys || both.shape.size() != 2 || both.shape[0] != 2 * values)
    return bad_input(g.path + ": tensor " + quote(both.stored) + " has shape " +
                     onnx::shape_text(both.shape) + ", which is not two rows for each head of values");
  const int64_t shared = values / keys;
  for (const bool decays : {false, true}) {
    GgufSource one = both;
    one.shape[0] = values;
    for (int64_t j = 0; j < values; ++j)
      one.row_order.push_back(j / shared * 2 * shared + j % shared + (decays ? shared : 0));
    const std::string prefix = to.substr(0, to.size() - std::string_view("in_proj_ba.weight").size());
    out.emplace(prefix + (decays ? "in_proj_a.weight" : "in_proj_b.weight"), std::move(one));
  }
  return {};
}

// Whether a tensor is of a layer that drafts tokens, behind those of the model.
bool is_of_draft(const Gguf& g, const std::string& architecture, std::string_view name) {
  const GgufValue *drafting = g.find(architecture + ".nextn_predict_layers"),
                  *layers = g.find(architecture + ".block_count");
  if (!drafting || !layers || !drafting->size() || !layers->size() || !name.starts_with("blk.")) return false;
  uint64_t layer = 0;
  std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer + *drafting->size() >= *layers->size();
}

// The stacks of gpt-oss: gates and values are one tensor, and names have no .weight.
Result<std::string> stacks_of_gpt_oss(const Gguf& g, const std::string& name, GgufSource& source) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const size_t dot = name.find('.', 4);
  const std::string to = "model.layers." + name.substr(4, dot - 4) + ".mlp.experts.";
  const std::string bias = ends(".bias") ? "_bias" : "";
  const bool matrices = bias.empty();
  if (source.shape.size() != (matrices ? 3u : 2u))
    return bad_input(g.path + ": tensor " + quote(name) + " is no stack: " + onnx::shape_text(source.shape));
  source.turned = matrices;
  if (matrices) std::swap(source.shape[1], source.shape[2]);
  if (ends("down_exps.weight") || ends("down_exps.bias")) return to + "down_proj" + bias;
  std::string second = name;
  second.replace(second.find("gate_exps"), 4, "up");
  const auto up = g.tensors.find(second);
  if (up == g.tensors.end() || up->second.shape != source.tensor->shape ||
      up->second.type != source.tensor->type)
    return bad_input(g.path + ": there is no tensor " + quote(second) + " of the type and shape of " +
                     quote(name));
  source.turned = true, source.second = &up->second;
  source.shape.back() *= 2;
  return to + "gate_up_proj" + bias;
}

// Keys of latent heads, [heads, rank, size], and their values, [heads, size, rank], are kv_b_proj.
Result<std::string> latent_heads(const Gguf& g, const std::string& name, GgufSource& source) {
  std::string second = name;
  second.replace(second.find("attn_k_b"), 8, "attn_v_b");
  const auto values = g.tensors.find(second);
  const std::vector<int64_t>& keys = source.tensor->shape;
  if (values == g.tensors.end() || keys.size() != 3 || values->second.shape.size() != 3 ||
      values->second.shape[0] != keys[0] || values->second.shape[2] != keys[1])
    return bad_input(g.path + ": tensor " + quote(name) + " of shape " + onnx::shape_text(keys) +
                     " is not the keys of the heads whose values are " + quote(second));
  source.second = &values->second;
  source.latent_heads = true;
  source.shape = {keys[0] * (keys[2] + values->second.shape[1]), keys[1]};
  return "model.layers." + name.substr(4, name.find('.', 4) - 4) + ".self_attn.kv_b_proj.weight";
}

int64_t heads_of(const Gguf& g, const std::string& architecture, std::string_view name) {
  const GgufValue* heads = g.find(architecture + ".attention.head_count");
  const GgufValue* kv = g.find(architecture + ".attention.head_count_kv");
  const bool keys = name.find(".attn_k.") != name.npos, queries = name.find(".attn_q.") != name.npos;
  const GgufValue* count = keys && kv ? kv : heads;
  const auto numbers = (keys || queries) && count ? count->numbers() : std::optional<std::vector<double>>();
  return numbers && !numbers->empty() ? static_cast<int64_t>(numbers->front()) : 0;
}

}  // namespace

Result<std::map<std::string, GgufSource>> gguf_sources(const Gguf& g) {
  INVAR_TRY(const GgufArchitecture* architecture, find_gguf_architecture(g));
  std::map<std::string, GgufSource> out;
  for (const auto& [name, t] : g.tensors) {
    if (std::ranges::count(kTables, name) || is_of_draft(g, architecture->name, name)) continue;
    std::string to = family_name(architecture->name, name);
    const std::string where = g.path + ": tensor " + quote(name);
    GgufSource source{&t, name, t.shape};
    if (architecture->name == std::string_view("deepseek2")) {
      if (name.ends_with(".attn_v_b.weight")) continue;  // with the keys
      if (name.ends_with(".attn_k_b.weight")) {
        INVAR_TRY(to, latent_heads(g, name, source));
      }
    }
    if (to.empty())
      return not_covered(where + " has no place in the model that the architecture " +
                         quote(architecture->name) + " describes");
    if (architecture->name == std::string_view("gpt-oss")) {
      if (name.find(".ffn_up_exps.") != name.npos) continue;  // with the gates
      if (to.ends_with("sinks.weight")) to.resize(to.size() - std::string_view(".weight").size());
      if (to.find('#') != to.npos) {
        INVAR_TRY(to, stacks_of_gpt_oss(g, name, source));
      }
    }
    if (architecture->pairs_rows) source.heads = heads_of(g, architecture->name, name);
    if (source.heads && t.shape[0] % (2 * source.heads) != 0)
      return bad_input(where + ": its " + std::to_string(t.shape[0]) + " rows are no pairs of " +
                       std::to_string(source.heads) + " heads");
    // Stacks of experts whose gates and values are one tensor stay stacks.
    constexpr std::string_view kDown = "mlp.experts.#.down_proj.weight";
    if (to.ends_with(kDown) &&
        g.tensors.contains("blk." + name.substr(4, name.find('.', 4) - 4) + ".ffn_gate_up_exps.weight"))
      to.replace(to.size() - kDown.size(), kDown.size(), "mlp.experts.down_proj");
    if (to.ends_with("linear_attn.in_proj_ba.weight")) {
      INVAR_CHECK_OK(split_rates(g, architecture->name, to, source, out));
      continue;
    }
    if (to.ends_with("linear_attn.conv1d.weight") && t.shape.size() == 2)
      source.shape.insert(source.shape.begin() + 1, 1);
    const size_t expert = to.find('#');
    if (expert == to.npos) {
      // A gate of one row is a vector in GGUF.
      if (to.ends_with("shared_expert_gate.weight") && t.shape.size() == 1)
        source.shape.insert(source.shape.begin(), 1);
      if (!out.emplace(to, std::move(source)).second)
        return bad_input(where + " and another one are both " + quote(to));
      continue;
    }
    if (t.shape.size() != 3 || t.shape[0] > 512)
      return bad_input(where +
                       " is no stack of matrices of at most 512 experts: " + onnx::shape_text(t.shape));
    source.shape.erase(source.shape.begin());
    for (source.expert = 0; source.expert < t.shape[0]; ++source.expert) {
      std::string one = to;
      out.emplace(one.replace(expert, 1, std::to_string(source.expert)), source);
    }
  }
  return out;
}

}  // namespace invar::checkpoint
