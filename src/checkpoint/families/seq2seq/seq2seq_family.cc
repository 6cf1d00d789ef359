#include "checkpoint/families/seq2seq/seq2seq_family.h"

#include <map>

namespace invar::checkpoint {

#define INVAR_SEQ2SEQ(X)    \
  X(bart, bart)             \
  X(mbart, mbart)           \
  X(marian, marian)         \
  X(pegasus, pegasus)       \
  X(m2m_100, m2m_100)       \
  X(blenderbot, blenderbot) \
  X(t5, t5)                 \
  X(mt5, mt5)               \
  X(umt5, umt5)             \
  X(whisper, whisper)

#define INVAR_DECLARE(type, function) void describe_##function(ConfigReader&, Seq2Seq&);
#define INVAR_ROW(type, function) {#type, describe_##function},
INVAR_SEQ2SEQ(INVAR_DECLARE)

std::span<const Seq2SeqFamily> seq2seq_families() {
  static constexpr Seq2SeqFamily kFamilies[] = {INVAR_SEQ2SEQ(INVAR_ROW)};
  return kFamilies;
}

void read_activation(ConfigReader& r, Seq2Seq& m, const char* key, const std::string& name) {
  static const std::map<std::string, Activation> names = {
      {"silu", Activation::silu},          {"swish", Activation::silu},
      {"gelu", Activation::gelu},          {"gelu_new", Activation::gelu_tanh},
      {"relu", Activation::relu},          {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu2", Activation::relu_squared},
  };
  if (const auto it = names.find(name); it != names.end())
    m.activation = it->second;
  else
    r.refuse(onnx::quote(key) + " = " + onnx::quote(name) +
             " is not covered; silu, gelu, gelu_new, gelu_pytorch_tanh, relu and relu2 are");
}

}  // namespace invar::checkpoint
