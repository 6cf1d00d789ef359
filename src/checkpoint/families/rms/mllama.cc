// The language model of Llama 3.2 Vision. Layers that attend to a picture do nothing without one.
#include <algorithm>

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_mllama(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.embedding_rows = d.vocab_size + 8;
  const json::Value* listed = r.find("cross_attention_layers");
  const json::Value usual = json::list({3, 8, 13, 18, 23, 28, 33, 38});
  const auto count = static_cast<int64_t>(d.layers.size());
  for (const json::Value& number : (listed && listed->is_array() ? *listed : usual).items)
    if (number.is_unsigned() && number.to_int64() < count) d.names.skipped.push_back(number.to_int64());
  std::ranges::sort(d.names.skipped);
  const bool repeated = std::ranges::adjacent_find(d.names.skipped) != d.names.skipped.end();
  if ((listed && (!listed->is_array() || listed->size() != d.names.skipped.size())) || repeated ||
      std::ssize(d.names.skipped) >= count)
    return r.reject("'cross_attention_layers' is not a list of some of " + std::to_string(count) + " layers");
  d.layers.resize(d.layers.size() - d.names.skipped.size());
  read_rope(r, {.theta = 500000}, d);
}

}  // namespace invar::checkpoint
