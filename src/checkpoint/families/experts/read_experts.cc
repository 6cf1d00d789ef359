#include "checkpoint/families/experts/read_experts.h"

#include <algorithm>

#include "checkpoint/architecture.h"

namespace invar::checkpoint {

using json::Value;
using onnx::quote;

int64_t read_count(ConfigReader& r, const char* key, int64_t fallback) {
  const Value* v = r.find(key);
  if (!v) return fallback;
  return *v == 0 ? 0 : r.size(key, 0);
}

void read_experts(ConfigReader& r, Decoder& d, const ExpertKeys& keys) {
  constexpr int64_t kMost = 512;  // grouped_matmul.1
  Experts& e = d.experts;
  e.count = r.size(keys.count, keys.default_count);
  e.chosen = r.size(keys.chosen, keys.default_chosen);
  e.intermediate_size = keys.inner ? r.size(keys.inner, keys.default_inner) : d.intermediate_size;
  if (e.count > kMost)
    r.refuse(quote(keys.count) + " = " + std::to_string(e.count) + " is not covered; up to 512 experts are");
  if (e.chosen > e.count) r.reject(quote(keys.chosen) + " is above " + quote(keys.count));
  for (Layer& layer : d.layers) layer.sparse = true;
}

void read_first_dense(ConfigReader& r, Decoder& d, int64_t fallback) {
  const int64_t dense = read_count(r, "first_k_dense_replace", fallback);
  for (size_t i = 0; i < d.layers.size(); ++i) d.layers[i].sparse = static_cast<int64_t>(i) >= dense;
}

void read_sparse_step(ConfigReader& r, Decoder& d) {
  const auto step = static_cast<size_t>(r.size("decoder_sparse_step", 1));
  const Value* dense = r.find("mlp_only_layers");
  if (dense && (!dense->is_array() ||
                !std::ranges::all_of(dense->items, [](const Value& i) { return i.is_unsigned(); })))
    return r.reject("'mlp_only_layers' = " + short_text(*dense) + " is not a list of layers");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    const auto named = [&](const Value& number) { return number == i; };
    d.layers[i].sparse = (i + 1) % step == 0 && !(dense && std::ranges::any_of(dense->items, named));
  }
}

void read_groups(ConfigReader& r, Decoder& d, int64_t groups, int64_t chosen_groups, const char* key) {
  Experts& e = d.experts;
  e.groups = r.size(key, groups);
  e.chosen_groups = r.size("topk_group", chosen_groups);
  const int64_t members = e.count / e.groups;
  if (e.count % e.groups != 0 || e.chosen_groups > e.groups || e.chosen > e.chosen_groups * members)
    return r.reject("'n_group' and 'topk_group' do not fit the numbers of experts");
  if (e.group_score == GroupScore::sum_of_two && e.groups > 1 && members < 2)
    r.reject("'n_group' leaves groups of one expert");
}

void read_sigmoid_routing(ConfigReader& r, Decoder& d, int64_t groups, int64_t chosen_groups, double scale,
                          const SigmoidDefaults& absent) {
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = true;
  e.group_score = GroupScore::sum_of_two;
  read_groups(r, d, groups, chosen_groups, absent.groups);
  e.normalized = r.flag(absent.normalized_key, absent.normalized);
  e.sum_offset = e.normalized ? 1e-20f : 0;
  e.scale = read_factor(r, "routed_scaling_factor", scale);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, absent.shared, 1);
  d.unused_layers = read_count(r, "num_nextn_predict_layers", 1);
}

void read_mlp_layer_types(ConfigReader& r, Decoder& d) {
  const Value* types = r.find("mlp_layer_types");
  if (!types) return;
  if (!types->is_array() || types->size() != d.layers.size())
    return r.reject("'mlp_layer_types' is not a list of " + std::to_string(d.layers.size()) + " types");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    d.layers[i].sparse = types->items[i] == "sparse";
    if (!d.layers[i].sparse && types->items[i] != "dense")
      return r.reject("'mlp_layer_types': " + short_text(types->items[i]) + " is neither dense nor sparse");
  }
}

void name_as_mixtral(ExpertNames& n) {
  n.router = "block_sparse_moe.gate";
  n.experts = "block_sparse_moe.experts.";
  n.gate = "w1", n.up = "w3", n.down = "w2";
}

}  // namespace invar::checkpoint
