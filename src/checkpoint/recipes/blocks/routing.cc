// A router chooses experts of a token and their weights (spec/decoder.md decoder.15, decoder.16).
#include <limits>
#include <numeric>

#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// The first `count` of the last axis, the largest first; of equals the lower index first (topk.3).
DecoderGraph::Chosen DecoderGraph::top(const std::string& name, const std::string& x, int64_t count) {
  const std::string k = b_.constant("top_" + std::to_string(count), std::vector{count});
  b_.node("TopK", name, {x, k}, {{"axis", int64_t{-1}}});
  b_.graph().nodes.back().outputs = {name + ".values", name + ".indices"};
  return {name + ".values", name + ".indices"};
}

// Scores outside the chosen groups become -inf.
std::string DecoderGraph::in_chosen_groups(const std::string& router, const std::string& scores) {
  const Experts& e = d_.experts;
  if (e.groups == 1) return scores;
  const std::string p = router + ".groups";
  const std::string last = b_.constant("axis_3", std::vector<int64_t>{3});
  const std::string grouped = reshaped(p, scores, {0, 0, e.groups, e.count / e.groups});
  const Attributes drop = {{"keepdims", int64_t{0}}};
  const std::string group_scores =
      e.group_score == GroupScore::maximum
          ? b_.node("ReduceMax", p + ".maximum", {grouped, last}, drop)
          : b_.node("ReduceSum", p + ".sum", {top(p + ".two", grouped, 2).weights, last}, drop);
  const std::string chosen = top(p + ".chosen", group_scores, e.chosen_groups).experts;
  std::vector<int64_t> numbers(static_cast<size_t>(e.groups));
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::string equal =
      b_.node("Equal", p + ".equal",
              {b_.node("Unsqueeze", p + ".column", {chosen, last}), b_.constant("group_numbers", numbers)});
  const std::string any =
      b_.node("ReduceMax", p + ".any", {equal, b_.constant("axis_2", std::vector<int64_t>{2})}, drop);
  const std::string masked =
      b_.node("Where", p + ".masked",
              {b_.node("Unsqueeze", p + ".mask", {any, last}), grouped,
               b_.constant("minus_infinity", std::vector{-std::numeric_limits<float>::infinity()})});
  return reshaped(p + ".flat", masked, {0, 0, e.count});
}

// SparseMixer without its noise (Liu et al., arXiv 2310.00811; decoder.39): the weight of each of
// two experts is its softmax among those whose scores are near, for the second one without the
// first.
DecoderGraph::Chosen DecoderGraph::mixed(const std::string& router, const std::string& scores) {
  const Experts& e = d_.experts;
  const Chosen two = top(router + ".chosen", scores, 2);
  const std::string none =
      b_.constant("minus_infinity", std::vector{-std::numeric_limits<float>::infinity()});
  const std::string size = b_.node("Abs", router + ".size", {scores});
  std::vector<int64_t> numbers(static_cast<size_t>(e.count));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Attributes along_last = {{"axis", int64_t{-1}}};
  const Strings largest = parts(router + ".largest", two.weights, 2, {1, 1}),
                expert = parts(router + ".experts", two.experts, 2, {1, 1});
  Strings weights;
  std::string left = scores;
  for (size_t i = 0; i < 2; ++i) {
    const std::string p = router + "." + std::to_string(i);
    const std::string unit = b_.node("Max", p + ".unit", {size, largest[i]});
    const std::string distance =
        b_.node("Div", p + ".distance", {b_.node("Sub", p + ".less", {largest[i], scores}), unit});
    const std::string far =
        b_.node("Greater", p + ".far", {distance, b_.constant("threshold", std::vector{e.threshold})});
    const std::string near = b_.node("Where", p + ".near", {far, none, left});
    const std::string shares = b_.node("Softmax", p + ".softmax", {near}, along_last);
    weights.push_back(b_.node("GatherElements", p + ".weight", {shares, expert[i]}, along_last));
    if (i == 1) break;
    const std::string first =
        b_.node("Equal", p + ".first", {b_.constant("expert_numbers", numbers), expert[i]});
    left = b_.node("Where", p + ".left", {first, none, left});
  }
  return {b_.node("Concat", router + ".weights", weights, along_last), two.experts};
}

DecoderGraph::Chosen DecoderGraph::route(const std::string& layer, const std::string& x) {
  const Experts& e = d_.experts;
  const std::string p = layer + e.names.router, last = b_.constant("last_axis", std::vector<int64_t>{-1});
  const int64_t all = e.count + e.passing;
  std::string scores = linear(p, x, d_.hidden_size, all, e.router_bias);
  if (e.router_softcap != 0) {
    const std::string inner = scaled("Div", p + ".router_softcap", scores, e.router_softcap, 0);
    scores = b_.node("Mul", p + ".capped", {b_.node("Tanh", p + ".tanh", {inner}), "router_softcap"});
  }
  if (e.routing == Routing::sparsemixer) return mixed(p, scores);
  const Attributes along_last = {{"axis", int64_t{-1}}};
  if (e.routing == Routing::softmax) scores = b_.node("Softmax", p + ".softmax", {scores}, along_last);
  if (e.routing == Routing::sigmoid) scores = b_.node("Sigmoid", p + ".sigmoid", {scores});
  std::string choice = scores;
  if (e.correction_bias) {
    const auto shape = e.names.correction_bias_is_row ? std::vector{int64_t{1}, all} : std::vector{all};
    const std::string bias = b_.weight(layer + e.names.correction_bias, shape);
    choice = b_.node("Add", p + ".corrected", {scores, bias});
  }
  Chosen chosen = top(p + ".chosen", in_chosen_groups(p, choice), e.chosen);
  if (e.correction_bias)
    chosen.weights = b_.node("GatherElements", p + ".weights", {scores, chosen.experts}, along_last);
  if (e.routing == Routing::softmax_of_chosen)
    chosen.weights = b_.node("Softmax", p + ".softmax", {chosen.weights}, along_last);
  if (e.routing == Routing::sigmoid_of_chosen)
    chosen.weights = b_.node("Sigmoid", p + ".sigmoid", {chosen.weights});
  if (e.normalized) {
    std::string sum = b_.node("ReduceSum", p + ".sum", {chosen.weights, last});
    sum = scaled("Add", p + ".sum_offset", sum, e.sum_offset, 0);
    sum = scaled("Max", p + ".sum_minimum", sum, e.sum_minimum, 0);
    chosen.weights = b_.node("Div", p + ".normalized", {chosen.weights, sum});
  }
  if (!e.names.expert_scale.empty()) {
    const std::string scales = b_.weight(layer + e.names.expert_scale, {e.count});
    const std::string chosen_scales =
        b_.node("Gather", p + ".expert_scales", {scales, chosen.experts}, {{"axis", int64_t{0}}});
    chosen.weights = b_.node("Mul", p + ".expert_scaled", {chosen.weights, chosen_scales});
  }
  chosen.weights = scaled("Mul", p + ".routed_scale", chosen.weights, e.scale, 1);
  return chosen;
}

}  // namespace invar::checkpoint
