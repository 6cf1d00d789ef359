// The head for several tokens as checkpoints ship it (multi-token prediction): "mtp." beside the
// model (Qwen3-Next, Qwen 3.5), or the layer after the last one (DeepSeek-V3, GLM-4.5). Embedding
// and logits are those of the model.
#include <algorithm>

#include "checkpoint/recipes/blocks/decoder_graph_builder.h"
#include "checkpoint/recipes/decoder_graph.h"

namespace invar::checkpoint {
namespace {

const std::string kHead = "mtp.", kFirstLayer = "layers.0.", kJoin = "fc.weight";

// Names of the layer after the last one -> those of "mtp.".
constexpr std::pair<const char*, const char*> kRenamed[] = {{"eh_proj.", "fc."},
                                                            {"enorm.", "pre_fc_norm_embedding."},
                                                            {"hnorm.", "pre_fc_norm_hidden."},
                                                            {"shared_head.norm.", "norm."}};

// "": the tensor is no part of the head.
std::string name_in_head(const std::string& name, const std::string& layer_behind) {
  if (name.starts_with(kHead + "layers.") && !name.starts_with(kHead + kFirstLayer)) return "";
  if (name.starts_with(kHead)) return name;
  if (!name.starts_with(layer_behind)) return "";
  const std::string rest = name.substr(layer_behind.size());
  for (const auto& [theirs, ours] : kRenamed)
    if (rest.starts_with(theirs)) return kHead + ours + rest.substr(std::string_view(theirs).size());
  // Copies of the model's own tables.
  if (rest.starts_with("embed_tokens.") || rest.starts_with("shared_head.")) return "";
  return kHead + kFirstLayer + rest;
}

}  // namespace

std::string DecoderGraph::with_hidden(const std::string& x) {
  const std::string hidden = "hidden_states";
  b_.input(hidden, kFloat, {{-1, "batch"}, {-1, "seq"}, {d_.hidden_size, ""}});
  const std::string both = b_.node(
      "Concat", prefix_ + "joined",
      {block_norm(prefix_ + "pre_fc_norm_embedding", x), block_norm(prefix_ + "pre_fc_norm_hidden", hidden)},
      {{"axis", int64_t{2}}});
  return linear(prefix_ + "fc", both, 2 * d_.hidden_size, d_.hidden_size, false);
}

Result<onnx::Graph> prediction_head_graph(const Decoder& decoder, const Checkpoint& checkpoint) {
  std::string prefix = decoder.names.prefix, head = decoder.names.head;
  const auto has_layers = [&](const std::string& at) {
    const auto it = checkpoint.tensors.lower_bound(at + decoder.names.layers);
    return it != checkpoint.tensors.end() && it->first.starts_with(at + decoder.names.layers);
  };
  for (const auto& [other, its_head] : decoder.names.other_places)
    if (!has_layers(prefix) && has_layers(other)) prefix = other, head = its_head;
  const std::string behind = prefix + decoder.names.layers + std::to_string(decoder.layers.size()) + ".";
  Checkpoint own{checkpoint.folder, checkpoint.files, {}};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (const std::string known = name_in_head(name, behind); !known.empty()) own.tensors[known] = tensor;
    if (name == prefix + decoder.names.embedding + ".weight")
      own.tensors[kHead + decoder.names.embedding + ".weight"] = tensor;
    if (name == head + ".weight") own.tensors[name] = tensor;
  }
  if (!own.tensors.contains(kHead + kJoin))
    return not_covered(checkpoint.folder + ": it has no head for several tokens: neither " + kHead + kJoin +
                       " nor " + behind + "eh_proj.weight");
  Decoder one = decoder;
  const auto attends = [](const Layer& layer) { return layer.mixer == Mixer::attention; };
  const auto last = std::find_if(decoder.layers.rbegin(), decoder.layers.rend(), attends);
  if (last == decoder.layers.rend())
    return not_covered(checkpoint.folder + ": the model has no layer of attention as its head has");
  one.layers = {*last};
  one.layers[0].sparse = std::ranges::any_of(
      own.tensors, [&](const auto& t) { return t.first.starts_with(kHead + kFirstLayer + "mlp.experts."); });
  one.names.prefix = kHead, one.names.head = head, one.names.final_norm = "norm";
  one.names.other_places.clear(), one.names.ignored_begins.clear();
  one.unused_layers = 0, one.takes_hidden = true;
  one.metadata.clear();
  return decoder_graph(one, own);
}

}  // namespace invar::checkpoint
