#include "checkpoint/families/hybrid/read_hybrid.h"

#include "checkpoint/architecture.h"

namespace invar::checkpoint {

using json::Value;
using onnx::quote;

void read_mixers(ConfigReader& r, Decoder& d, const std::function<bool(size_t)>& recurrent) {
  const Value* types = r.find("layer_types");
  if (types && (!types->is_array() || types->size() != d.layers.size()))
    return r.reject("'layer_types' is not a list of " + std::to_string(d.layers.size()) + " types");
  bool attends = false;
  for (size_t i = 0; i < d.layers.size(); ++i) {
    if (types && types->items[i] != "full_attention" && types->items[i] != "linear_attention")
      return r.refuse("'layer_types': " + short_text(types->items[i]) +
                      " is not covered; full_attention and linear_attention are");
    const bool delta = types ? types->items[i] == "linear_attention" : recurrent(i);
    d.layers[i].mixer = delta ? Mixer::gated_delta : Mixer::attention;
    attends = attends || !delta;
  }
  // The length of a sequence is that of the keys of attention.
  if (!attends) r.refuse("a model whose layers are all recurrent is not covered");
}

void read_delta(ConfigReader& r, Decoder& d) {
  constexpr int64_t kMost = 8;  // causal_conv.1
  GatedDelta& g = d.delta;
  g.taps = r.size("linear_conv_kernel_dim", 4);
  if (g.taps < 2 || g.taps > kMost)
    r.refuse("'linear_conv_kernel_dim' = " + std::to_string(g.taps) + " is not covered; 2 to 8 are");
  if (g.value_heads % g.key_heads != 0)
    r.reject("'linear_num_value_heads' is not a multiple of 'linear_num_key_heads'");
  // The convolutions have the activation of the MLP, and the operator has this one alone.
  if (d.activation != Activation::silu)
    r.refuse("'hidden_act' other than silu is not covered with layers of the gated delta rule");
  if (g.norm_epsilon == 0) g.norm_epsilon = d.norm_epsilon;
}

}  // namespace invar::checkpoint
