// Spells attention in torch: functional.scaled_dot_product_attention where it has such, else a
// helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Tells whether an attribute says what its absence does.
bool is_plain_attribute(const std::string& name, const AttributeValue& value) {
  if (const auto* v = std::get_if<F32Bits>(&value)) return v->value() == 0;
  const auto* v = std::get_if<int64_t>(&value);
  return v && *v == (name == "left" || name == "right" ? -1 : 0);
}

Result<std::string> attention(const TorchCall& c) {
  bool plain = c.i("heads_first") != 0;
  for (const auto& [name, value] : c.attributes) {
    const bool known = name == "q_heads" || name == "kv_heads" || name == "scale" || name == "causal" ||
                       name == "heads_first";
    plain = plain && (known || is_plain_attribute(name, value));
  }
  if (!plain) return cat("rooms.attention.attention(", python::join(c.from(0)), c.keywords(), ")");
  return cat("functional.scaled_dot_product_attention(", c[0], ", ", c[1], ", ", c[2],
             c.i("causal") ? ", is_causal=True" : "", ", scale=", c.text("scale"),
             c.i("q_heads") != c.i("kv_heads") ? ", enable_gqa=True" : "", ")");
}

Result<std::string> attention_backward(const TorchCall& c) {
  return cat("rooms.attention.backward(", python::join(c.from(0)), c.keywords(), ")");
}

}  // namespace

void spell_attention(TorchSpellings& spellings) {
  spellings.add("attention", attention);
  spellings.add("attention_backward", attention_backward);
}

}  // namespace invar::compiler
