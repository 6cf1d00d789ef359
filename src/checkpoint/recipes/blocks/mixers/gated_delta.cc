// A layer of the gated delta rule (spec/decoder.md decoder.50 to decoder.53), and the gate of
// attention (decoder.54) of the models that have such layers.
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// The query of a head lies before its gate. qkv[0] becomes the queries, a fourth element the gates.
void DecoderGraph::split_gate(const std::string& name, Strings& qkv) {
  const std::string heads = reshaped(name + ".heads", qkv[0], {0, 0, d_.heads, 2 * d_.head_dim});
  const Strings halves = parts(name + ".split", heads, 3, {d_.head_dim, d_.head_dim});
  const int64_t size = d_.heads * d_.head_dim;
  qkv[0] = reshaped(name + ".queries", halves[0], {0, 0, size});
  qkv.push_back(reshaped(name + ".gates", halves[1], {0, 0, size}));
}

std::string DecoderGraph::attention_gated(size_t layer, const std::string& stem, const std::string& y,
                                          const std::string& gate) {
  const std::string p = stem + "self_attn.";
  const std::string open = b_.node(d_.attention_gate_softplus ? "Softplus" : "Sigmoid", p + "gate", {gate});
  if (!d_.attention_gate_of_heads) return b_.node("Mul", p + "gated", {y, open});
  const int64_t size = value_dim(layer), count = heads(layer);
  const std::string of_heads = b_.node("Mul", p + "gated.heads",
                                       {reshaped(p + "results.heads", y, {0, 0, count, size}),
                                        reshaped(p + "gate.column", open, {0, 0, count, 1})});
  return reshaped(p + "gated", of_heads, {0, 0, count * size});
}

DecoderGraph::DeltaOperands DecoderGraph::delta_operands(const std::string& index, const std::string& p,
                                                         const std::string& x) {
  const GatedDelta& g = d_.delta;
  const DeltaNames& n = g.names;
  const int64_t keys = g.key_heads * g.key_dim, values = g.value_heads * g.value_dim;
  const auto from_x = [&](const std::string& name, int64_t size) {
    return linear(p + name, x, d_.hidden_size, size, false);
  };
  const auto convolved = [&](const std::string& name, const std::string& state, const std::string& of,
                             int64_t channels) {
    return causal_conv(p + name, {"past_conv." + state, "present_conv." + state}, of, channels, g.taps, false,
                       true);
  };
  DeltaOperands o;
  if (g.layout == DeltaLayout::separate) {
    const auto one = [&](const std::string& name, const char* letter, int64_t size) {
      return convolved(letter + std::string("_conv1d"), index + "." + letter, from_x(name, size), size);
    };
    o.q = one(n.q, "q", keys), o.k = one(n.k, "k", keys), o.v = one(n.v, "v", values);
  }
  const auto narrowed = [&](const std::string& in, const std::string& out, int64_t size) {
    return linear(p + out, from_x(in, g.value_dim), g.value_dim, size, false);
  };
  if (g.channel_decays) {
    o.gate = narrowed(n.gate_in, n.gate_out, values);
    o.rate = from_x(n.rate, g.value_heads);
    o.decay = narrowed(n.decay_in, n.decay_out, keys);
  } else if (g.layout != DeltaLayout::by_key_head) {
    o.gate = from_x(n.gate, values);
    o.rate = from_x(n.rate, g.value_heads);
    o.decay = from_x(n.decay, g.value_heads);
  }
  if (g.layout == DeltaLayout::separate) return o;
  std::string qkv;
  if (g.layout == DeltaLayout::joined) {
    qkv = from_x(n.qkv, 2 * keys + values);
  } else {
    // Behind a head of keys are the heads of values that it serves, and what belongs to those.
    const int64_t shared = g.value_heads / g.key_heads, wide = shared * g.value_dim;
    const auto split = [&](const std::string& name, const std::vector<int64_t>& sizes) {
      int64_t size = 0;
      for (int64_t s : sizes) size += s;
      const std::string y = from_x(name, g.key_heads * size);
      Strings out =
          parts(p + name + ".split", reshaped(p + name + ".heads", y, {0, 0, g.key_heads, size}), 3, sizes);
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = reshaped(out[i] + ".flat", out[i], {0, 0, g.key_heads * sizes[i]});
      return out;
    };
    const Strings made = split(n.qkvz, {g.key_dim, g.key_dim, wide, wide});
    const Strings rates = split(n.rate_decay, {shared, shared});
    qkv = b_.node("Concat", p + "qkv", {made[0], made[1], made[2]}, {{"axis", int64_t{2}}});
    o.gate = made[3], o.rate = rates[0], o.decay = rates[1];
  }
  const Strings made =
      parts(p + "conv1d.split", convolved("conv1d", index, qkv, 2 * keys + values), 2, {keys, keys, values});
  o.q = made[0], o.k = made[1], o.v = made[2];
  return o;
}

// -exp(A_log) softplus(x + dt_bias): the logarithm of a decay for each head, or of each channel.
std::string DecoderGraph::delta_decay(const std::string& p, const std::string& x) {
  const GatedDelta& g = d_.delta;
  const int64_t channels = g.key_heads * g.key_dim;
  const std::vector<int64_t> biases = {g.channel_decays ? channels : g.value_heads};
  const auto heads = g.channel_decays ? std::vector<int64_t>{1, 1, g.value_heads, 1} : biases;
  std::string steps = b_.node("Softplus", p + "softplus",
                              {b_.node("Add", p + "time_steps", {x, b_.weight(p + "dt_bias", biases)})});
  if (g.channel_decays) steps = reshaped(p + "softplus.heads", steps, {0, 0, g.value_heads, g.key_dim});
  const std::string log = p + "A_log";
  const std::string rate = g.stored_decays ? b_.weight(p + "A", heads)
                                           : b_.node("Neg", log + ".negative",
                                                     {b_.node("Exp", log + ".exp", {b_.weight(log, heads)})});
  const std::string y = b_.node("Mul", p + "decay", {steps, rate});
  return g.channel_decays ? reshaped(p + "decay.flat", y, {0, 0, channels}) : y;
}

// Each head divided by its length, sqrt(sum of squares + 10^-6): the norm by the root mean square
// whose weight is 1 / sqrt(key_dim).
std::string DecoderGraph::unit_heads(const std::string& name, const std::string& x) {
  const GatedDelta& g = d_.delta;
  const std::string weight = b_.constant(
      "unit_length", std::vector<float>(static_cast<size_t>(g.key_dim), default_attention_scale(g.key_dim)));
  const std::string y = b_.node("RMSNormalization", name,
                                {reshaped(name + ".heads", x, {0, 0, g.key_heads, g.key_dim}), weight},
                                {{"axis", int64_t{-1}},
                                 {"epsilon", static_cast<float>(1e-6 / static_cast<double>(g.key_dim))},
                                 {"stash_type", int64_t{kFloat}}});
  return reshaped(name + ".flat", y, {0, 0, g.key_heads * g.key_dim});
}

std::string DecoderGraph::gated_delta(size_t layer, const std::string& x) {
  const GatedDelta& g = d_.delta;
  const std::string index = std::to_string(layer);
  const std::string p = prefix_ + d_.names.layers + index + "." + g.names.prefix;
  const DeltaOperands o = delta_operands(index, p, x);
  const State memory = {"past_recurrent." + index, "present_recurrent." + index};
  const std::string rate =
      scaled("Mul", p + "rate_doubled", b_.node("Sigmoid", p + "rate", {o.rate}), g.doubled_rate ? 2 : 1, 1);
  const auto heads = [&](const std::string& name, const std::string& of) {
    const std::string unit = unit_heads(p + name, of);
    const Strings copies(static_cast<size_t>(g.value_heads / g.key_heads), unit);
    return g.tiled_heads ? b_.node("Concat", unit + ".tiled", copies, {{"axis", int64_t{2}}}) : unit;
  };
  std::string y =
      linear_attention(p + "recurrence", memory,
                       {heads("q_unit", o.q), heads("k_unit", o.k), o.v, delta_decay(p, o.decay), rate},
                       {.update_rule = "gated_delta",
                        .query_heads = g.tiled_heads ? g.value_heads : g.key_heads,
                        .state = {g.value_heads, g.key_dim, g.value_dim},
                        .scale = default_attention_scale(g.key_dim)});
  y = reshaped(p + "recurrence.heads", y, {0, 0, g.value_heads, g.value_dim});
  const std::string norm = p + g.names.norm;
  y = b_.node("RMSNormalization", norm, {y, b_.weight(norm + ".weight", {g.value_dim})},
              {{"axis", int64_t{-1}}, {"epsilon", g.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  y = reshaped(norm + ".flat", y, {0, 0, g.value_heads * g.value_dim});
  const std::string open = g.channel_decays ? b_.node("Sigmoid", p + "gate.sigmoid", {o.gate})
                                            : activated(b_, Activation::silu, p + "gate.", o.gate);
  y = b_.node("Mul", p + "gated", {y, open});
  return linear(p + g.names.out, y, g.value_heads * g.value_dim, d_.hidden_size, false);
}

}  // namespace invar::checkpoint
