// The versions of the residual stream of Gemma 3n, its linear branch, and the MLP whose gates are
// cut off (spec/decoder.md decoder.66 to decoder.68).
#include <cmath>

#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// Of the last axis, kept; squares whose mean is below `least` count as that. 0: none does.
std::string DecoderGraph::root_mean_square(const std::string& name, const std::string& x, float least) {
  std::string mean =
      b_.node("ReduceMean", name + ".mean", {b_.node("Mul", name + ".squares", {x, x}), "last_axis"});
  mean = scaled("Max", name + ".above.least_square", mean, least, 0);
  return b_.node("Sqrt", name, {mean});
}

// x [B, S, E] -> [B, S, versions, E]: x itself, and its products with a matrix for each of the
// others, as large as x.
std::string DecoderGraph::versions(const std::string& x) {
  const std::string p = prefix_ + "altup_projections.", shape = p + "column";
  const int64_t size = d_.hidden_size;
  b_.constant("last_axis", std::vector<int64_t>{-1});
  const std::string wanted = root_mean_square(p + "size", x, 0);
  Strings all = {reshaped(p + "first", x, {0, 0, 1, size})};
  for (int64_t i = 0; i + 1 < d_.altup.inputs; ++i) {
    const std::string name = p + std::to_string(i);
    const std::string y = linear(name, x, size, size, false);
    const std::string sized = b_.node(
        "Div", name + ".sized",
        {b_.node("Mul", name + ".times_size", {y, wanted}), root_mean_square(name + ".size", y, 1e-5f)});
    all.push_back(reshaped(name + ".column", sized, {0, 0, 1, size}));
  }
  return b_.node("Concat", "versions", all, {{"axis", int64_t{2}}});
}

// -> [B, S, E].
std::string DecoderGraph::one_version(const std::string& name, const std::string& x, int64_t index) {
  return b_.node("Gather", name, {x, b_.scalar("version_" + std::to_string(index), index)},
                 {{"axis", int64_t{2}}});
}

// The mean of all versions, each but the first one through its matrix and as large as the first.
std::string DecoderGraph::joined_versions(const std::string& x) {
  const std::string p = prefix_ + "altup_unembed_projections.";
  const int64_t size = d_.hidden_size;
  const std::string first = one_version(p + "first", x, 0), wanted = root_mean_square(p + "size", first, 0);
  Strings all = {reshaped(p + "first.column", first, {0, 0, 1, size})};
  for (int64_t i = 0; i + 1 < d_.altup.inputs; ++i) {
    const std::string name = p + std::to_string(i);
    const std::string y = linear(name, one_version(name + ".version", x, i + 1), size, size, false);
    const std::string sized = b_.node(
        "Div", name + ".sized",
        {b_.node("Mul", name + ".times_size", {y, wanted}), root_mean_square(name + ".size", y, 1e-5f)});
    all.push_back(reshaped(name + ".column", sized, {0, 0, 1, size}));
  }
  return b_.node("ReduceMean", p + "mean",
                 {b_.node("Concat", p + "all", all, {{"axis", int64_t{2}}}),
                  b_.constant("axis_2", std::vector<int64_t>{2})},
                 {{"keepdims", int64_t{0}}});
}

// What decides the weights of versions: tanh of a number for each, of x [B, S, E]. A layer has one
// router, which it uses twice; `p` begins the names of nodes.
std::string DecoderGraph::version_weights(const std::string& layer, const std::string& p,
                                          const std::string& x) {
  const int64_t size = d_.hidden_size;
  const std::string weight = b_.weight(layer + "router_norm.weight", {size}),
                    router = b_.weight(layer + "modality_router.weight", {d_.altup.inputs, size});
  std::string y =
      b_.node("RMSNormalization", p + "router_norm", {x, weight},
              {{"axis", int64_t{-1}}, {"epsilon", d_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  y = scaled("Mul", p + "router_input_scale", y, static_cast<float>(1.0 / static_cast<double>(size)), 1);
  const std::string turned =
      b_.node("Transpose", p + "router.transposed", {router}, {{"perm", std::vector<int64_t>{1, 0}}});
  return b_.node("Tanh", p + "tanh", {b_.node("MatMul", p + "router", {y, turned})});
}

// A layer of the block `both` with a linear branch beside attention, of the active version.
std::string DecoderGraph::laurel_layer(size_t index, const std::string& x) {
  const TensorNames& n = d_.names;
  const std::string p = prefix_ + n.layers + std::to_string(index) + ".", l = p + "laurel.";
  const std::string normed = block_norm(p + n.attention_norm, x);
  const std::string narrow = linear(l + "linear_left", normed, d_.hidden_size, d_.altup.laurel_rank, false);
  const std::string wide = linear(l + "linear_right", narrow, d_.altup.laurel_rank, d_.hidden_size, false);
  const std::string beside = b_.node("Add", l + "output", {normed, block_norm(l + "post_laurel_norm", wide)});
  std::string y =
      b_.node("Add", p + "attended", {x, block_norm(p + n.attention_post_norm, mixed(index, normed))});
  y = scaled("Div", p + "root_of_two", b_.node("Add", p + "with_laurel", {y, beside}), std::sqrt(2.0f), 1);
  return b_.node("Add", p + "output",
                 {y, block_norm(p + n.mlp_post_norm, mlp(index, block_norm(p + n.mlp_norm, y), y))});
}

// x [B, S, versions, E]. Each version is predicted from all, and corrected by what the layer made
// of the active one.
std::string DecoderGraph::altup_layer(size_t index, const std::string& x) {
  const AltUp& a = d_.altup;
  const int64_t size = d_.hidden_size;
  const std::string p = prefix_ + d_.names.layers + std::to_string(index) + ".altup.";
  const std::string before = version_weights(p, p + "before.", one_version(p + "active", x, a.active));
  const std::string weights =
      reshaped(p + "prediction_coefs.matrix",
               linear(p + "prediction_coefs", before, a.inputs, a.inputs * a.inputs, false),
               {0, 0, a.inputs, a.inputs});
  const std::string predicted =
      b_.node("Add", p + "predicted", {b_.node("MatMul", p + "mixed", {weights, x}), x});
  const std::string active = one_version(p + "active_predicted", predicted, a.active);
  const std::string y = laurel_layer(index, active);
  const std::string news = reshaped(p + "news.row", b_.node("Sub", p + "news", {y, active}), {0, 0, 1, size});
  const std::string gains = scaled(
      "Add", p + "gain.one",
      linear(p + "correction_coefs", version_weights(p, p + "after.", y), a.inputs, a.inputs, false), 1, 0);
  const std::string corrected = b_.node(
      "Add", p + "corrected",
      {b_.node("Mul", p + "correction", {news, reshaped(p + "gain.column", gains, {0, 0, a.inputs, 1})}),
       predicted});
  std::string first = one_version(p + "active_corrected", corrected, a.active);
  if (a.scaled) first = b_.node("Mul", p + "scaled", {first, b_.weight(p + "correct_output_scale", {size})});
  const std::string token = reshaped(p + "token.row", of_layer_input(index, first), {0, 0, 1, size});
  const Strings two = parts(p + "corrected.split", corrected, 2, {1, a.inputs - 1});
  return b_.node("Concat", p + "output", {two[0], b_.node("Add", p + "others", {two[1], token})},
                 {{"axis", int64_t{2}}});
}

// Gates [B, S, F] less what about `sparsity` of a normal distribution of their mean and deviation
// is below; relu of it.
std::string DecoderGraph::cut_off(const std::string& p, const std::string& gate, double sparsity) {
  const std::string last = b_.constant("last_axis", std::vector<int64_t>{-1});
  const std::string mean = b_.node("ReduceMean", p + "mean", {gate, last});
  const std::string deviation =
      root_mean_square(p + "deviation", b_.node("Sub", p + "centred", {gate, mean}), 0);
  std::string cut = scaled("Mul", p + "cut.deviations_" + std::to_string(sparsity), deviation,
                           normal_quantile(sparsity), 1);
  cut = b_.node("Add", p + "cut", {mean, cut});
  return b_.node("Relu", p + "gate", {b_.node("Sub", p + "above", {gate, cut})});
}

}  // namespace invar::checkpoint
