#include "checkpoint/families/hybrid/read_mixers.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/architecture.h"

namespace invar::checkpoint {

using json::Value;
using onnx::quote;

void read_mixers(ConfigReader& r, Decoder& d, const char* key, const Value& types,
                 std::initializer_list<std::pair<const char*, Mixer>> names) {
  if (!types.is_array() || types.size() != d.layers.size())
    return r.reject(quote(key) + " is not a list of " + std::to_string(d.layers.size()) + " types");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    const auto* name = names.begin();
    while (name != names.end() && types.items[i] != name->first) ++name;
    if (name == names.end())
      return r.refuse(quote(key) + ": layer " + std::to_string(i) + " is " + short_text(types.items[i]) +
                      ", which is not covered; " + kOtherModels);
    d.layers[i].mixer = name->second;
  }
}

void read_mixers(ConfigReader& r, Decoder& d, const std::function<bool(size_t)>& recurrent) {
  if (const Value* types = r.find("layer_types")) {
    read_mixers(r, d, "layer_types", *types,
                {{"full_attention", Mixer::attention}, {"linear_attention", Mixer::gated_delta}});
  } else {
    for (size_t i = 0; i < d.layers.size(); ++i)
      d.layers[i].mixer = recurrent(i) ? Mixer::gated_delta : Mixer::attention;
  }
  // The length of a sequence is that of the keys of attention.
  if (std::ranges::none_of(d.layers, [](const Layer& l) { return l.mixer == Mixer::attention; }))
    r.refuse("a model whose layers are all recurrent is not covered");
}

void read_attention_layers(ConfigReader& r, Decoder& d, const char* key, const Value& numbers, Mixer other) {
  for (Layer& layer : d.layers) layer.mixer = other;
  if (!numbers.is_array() || !std::ranges::all_of(numbers.items, &Value::is_unsigned))
    return r.reject(quote(key) + " = " + short_text(numbers) + " is not a list of layers");
  for (const Value& i : numbers.items)
    if (i.to_uint64() < d.layers.size()) d.layers[i.to_uint64()].mixer = Mixer::attention;
}

int64_t read_width(ConfigReader& r, const char* key, int64_t fallback) {
  const int64_t width = r.size(key, fallback);
  if (width < 2 || width > 8)  // causal_conv.1
    r.refuse(quote(key) + " = " + std::to_string(width) + " is not covered; widths of 2 to 8 are");
  return width;
}

void read_state_space(ConfigReader& r, Decoder& d, int64_t inner, const StateSpaceKeys& keys) {
  StateSpace& s = d.state_space;
  s.heads = r.size(keys.heads, keys.default_heads);
  const Value* size = r.find(keys.head_dim);
  const bool chosen = !size || *size == "auto";  // "auto" of transformers: what the heads leave
  s.head_dim = !chosen ? r.size(keys.head_dim, 0) : inner == 0 ? 64 : inner / s.heads;
  s.groups = r.size(keys.groups, keys.default_groups);
  s.state_size = r.size(keys.state, keys.default_state);
  s.width = read_width(r, keys.width, 4);
  if (s.head_dim < 1 || (inner != 0 && s.heads * s.head_dim != inner))
    r.reject(quote(keys.heads) + " times " + quote(keys.head_dim) + " is not " + std::to_string(inner) +
             ", the size of the state-space layers");
  if (s.heads % s.groups != 0) r.reject(quote(keys.heads) + " is not a multiple of " + quote(keys.groups));
  s.conv_bias = r.flag(keys.conv_bias, true);
  s.in_bias = r.flag(keys.in_bias);
  s.out_bias = r.flag(keys.out_bias);
  if (const std::string name = r.text(keys.activation, "silu"); name != "silu" && name != "swish")
    r.refuse(quote(keys.activation) + " = " + quote(name) +
             " is not covered with state-space layers; silu is");
}

void read_delta(ConfigReader& r, Decoder& d) {
  GatedDelta& g = d.delta;
  g.taps = read_width(r, "linear_conv_kernel_dim", 4);
  if (g.value_heads % g.key_heads != 0)
    r.reject("'linear_num_value_heads' is not a multiple of 'linear_num_key_heads'");
  // The convolutions have the activation of the MLP, and the operator has this one alone.
  if (d.activation != Activation::silu)
    r.refuse("'hidden_act' other than silu is not covered with layers of the gated delta rule");
  if (g.norm_epsilon == 0) g.norm_epsilon = d.norm_epsilon;
}

void read_time_step_limit(ConfigReader& r, Decoder& d) {
  const Value* limits = r.find("time_step_limit");
  if (!limits) return;
  const auto wrong = [&] {
    r.reject("'time_step_limit' = " + short_text(*limits) + " is not a list of a least and a largest number");
  };
  if (!limits->is_array() || limits->size() != 2 || !limits->items[0].is_number()) return wrong();
  const Value& most = limits->items[1];
  const double least = limits->items[0].to_double();
  // transformers has two spellings of infinity. parse_json() reads one as a number beyond binary32.
  const bool unlimited = (most.is_object() && most.get("__float__") == "Infinity") ||
                         (most.is_number() && std::isinf(static_cast<float>(most.to_double())));
  if (!(least >= 0) ||
      (!unlimited && !(most.is_number() && most.to_double() > 0 && most.to_double() >= least)))
    return wrong();
  d.state_space.dt_minimum = static_cast<float>(least);
  d.state_space.dt_maximum = unlimited ? 0 : static_cast<float>(most.to_double());
}

void read_mixers_alone(ConfigReader& r, Decoder& d, Mixer mixer, bool tied) {
  d.vocab_size = r.size("vocab_size", 0);
  d.hidden_size = r.size("hidden_size", 0);
  const int64_t layers = r.size("num_hidden_layers", 0);
  if (layers > 100000) r.reject("'num_hidden_layers' is absurdly large");
  if (r.status()) d.layers.resize(static_cast<size_t>(layers), {.mixer = mixer});
  d.attention_scale = default_attention_scale(d.head_dim);
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.tied = r.flag("tie_word_embeddings", tied);
  d.block = Block::single;
  TensorNames& n = d.names;
  n.prefix = "backbone.", n.attention_norm = "norm", n.final_norm = "norm_f";
  n.embedding = "embeddings";
}

}  // namespace invar::checkpoint
