// MelWeightMatrix as a constant (onnx.16).
#include "compiler/lowering/builders/expr_builder.h"
#include "num/pow/certified.h"

namespace invar::compiler {
namespace {

using num::DD;

constexpr int64_t kMaxWeights = 1 << 24, kMaxFilters = 1 << 12;

// mel = 2595 log10(1 + hertz / 700). The factor cancels, so the filters are equally spaced in
// log2(1 + hertz / 700).
DD octaves_of(float hertz) {
  return num::log2_of(1 + static_cast<double>(hertz) / 700);
}

// The DFT bin of a frequency: floor(samples * hertz / rate).
int64_t bin_of(DD octaves, double samples, double rate) {
  double whole = __builtin_floor(octaves.hi + 0.5), scale = 1;
  const DD power = num::exp2_of(num::dd_add(octaves, {-whole, 0}));
  for (; whole > 0; --whole) scale *= 2;
  const DD ratio = num::dd_add({power.hi * scale, power.lo * scale}, {-1, 0});
  const DD bin = num::dd_div(num::dd_mul(ratio, {700 * samples, 0}), {rate, 0});
  const double low = __builtin_floor(bin.hi);
  return static_cast<int64_t>(low) - (low == bin.hi && bin.lo < 0);
}

Status mel_weight_matrix(NodeView& node) {
  INVAR_CHECK_OK(node.expect(5, 5, {"output_datatype"}));
  INVAR_CHECK_OK(node.require_attr("output_datatype", int64_t{1}));
  INVAR_TRY(const int64_t filters, constant_int(node, 0, 0));
  INVAR_TRY(const int64_t samples, constant_int(node, 1, 0));
  INVAR_TRY(const int64_t rate, constant_int(node, 2, 0));
  INVAR_TRY(const std::vector<float> from, constant_floats(node, 3));
  INVAR_TRY(const std::vector<float> to, constant_floats(node, 4));
  if (filters < 1 || samples < 1 || rate < 1 || from.size() != 1 || to.size() != 1 || !(from[0] >= 0) ||
      !(to[0] >= from[0]) || !(to[0] <= static_cast<float>(rate)))
    return bad_input("numbers that describe no filters");
  if (filters > kMaxFilters || samples > kMaxWeights || filters * samples > kMaxWeights)
    return not_covered("more than " + std::to_string(kMaxFilters) + " filters or " +
                       std::to_string(kMaxWeights) + " weights");
  const int64_t bins = samples / 2 + 1;
  const DD low = octaves_of(from[0]);
  const DD step =
      num::dd_div(num::dd_add(octaves_of(to[0]), num::dd_neg(low)), {static_cast<double>(filters + 2), 0});
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < filters + 2; ++i) {
    const DD octaves = num::dd_add(num::dd_mul(step, {static_cast<double>(i), 0}), low);
    edge.push_back(bin_of(octaves, static_cast<double>(samples + 1), static_cast<double>(rate)));
    if (edge.back() < 0 || edge.back() >= bins) return bad_input("a filter beyond half the rate");
  }
  std::vector<float> weights(static_cast<size_t>(bins * filters), 0.0f);
  for (int64_t i = 0; i < filters; ++i) {
    const int64_t left = edge[static_cast<size_t>(i)], centre = edge[static_cast<size_t>(i + 1)],
                  right = edge[static_cast<size_t>(i + 2)];
    auto at = [&](int64_t bin) -> float& { return weights[static_cast<size_t>(bin * filters + i)]; };
    if (left == centre) at(centre) = 1;
    for (int64_t j = left; j <= centre && left != centre; ++j)
      at(j) = static_cast<float>(j - left) / static_cast<float>(centre - left);
    for (int64_t j = centre; j < right; ++j)
      at(j) = static_cast<float>(right - j) / static_cast<float>(right - centre);
  }
  ExprBuilder f(node);
  return node.replace(f.f32_tensor(weights, {bins, filters}));
}

}  // namespace

void decompose_mel(RuleRegistry& registry) {
  registry.add_rule("MelWeightMatrix", 17, mel_weight_matrix, "NNNEE>*");
}

}  // namespace invar::compiler
