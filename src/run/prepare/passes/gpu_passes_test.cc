// Decisions of the passes for a GPU, which need none but its kernels: an addition after a product
// is fused into it, and neighbours that one kernel can run stay independent.
#include <gtest/gtest.h>

#include <functional>

#include "base/opset.h"
#include "kernels/registry.h"
#include "run/prepare/prepare.h"
#include "run/prepare/testing.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// v3 = x A, v4 = v3 + y on inputs x, y and a row z.
struct Sum {
  const char *product = "matmul_exact16", *op = "add";
  std::vector<int> terms{3, 1};   // values
  const char* behind = nullptr;   // an operation on v3 behind the sum
  const char* between = nullptr;  // an operation on x between product and sum
  bool output = false;            // v3 is one, too

  plan::Plan plan() const {
    plan::Plan p;
    for (const auto& [name, rows] : {std::pair{"x", 3}, {"y", 3}, {"z", 1}}) {
      p.inputs.push_back({name, static_cast<int>(p.values.size())});
      p.values.push_back({DType::f32, {{rows, -1}, {96, -1}}, -1});
    }
    p.weights.push_back({"A", DType::f32, {96, 96}, {}, "weights.bin", 0, 96 * 96 * 4});
    const auto node = [&p](const char* name, std::vector<plan::Operand> in) {
      const OpInfo* info = op_info(name);
      p.values.push_back({DType::f32, {{3, -1}, {96, -1}}, -1});
      const int out = static_cast<int>(p.values.size()) - 1;
      p.nodes.push_back(
          {name, info->version, std::move(in), {out}, -1, {{"numerics", std::string(info->numerics)}}});
      return out;
    };
    const auto value = [](int v) { return plan::Operand{plan::Operand::value, v}; };
    node(product, {value(0), {plan::Operand::weight, 0}});
    if (between) p.outputs.push_back({"between", node(between, {value(0)})});
    std::vector<plan::Operand> in;
    for (const int v : terms) in.push_back(value(v));
    p.outputs.push_back({"sum", node(op, in)});
    if (behind) p.outputs.push_back({"behind", node(behind, {value(3)})});
    if (output) p.outputs.push_back({"product", 3});
    plan::assign_slots(p);
    return p;
  }
};

// Whether the sum is fused; `look` sees what prepare() made.
bool is_fused(const Sum& sum, bool observed = false,
              const std::function<void(const Executable&)>& look = nullptr) {
  const plan::Plan plan = sum.plan();
  auto made = prepare(plan, {"", std::make_shared<NoGpu>(), observed});
  if (!made) ADD_FAILURE() << made.error().message, std::abort();
  if (look) look(**made);
  return (*made)->fused() == 1 && (*made)->nodes[0].fused_count == 1;
}

TEST(FuseAdditions, OfTheResultAndAValueFromBefore) {
  if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(is_fused({}, false, [](const Executable& e) {
    EXPECT_NE(print(e)[1].find(": fused into operation 0"), std::string::npos) << print(e)[1];
    // The executor gives the product the memory of the sum, which is no operand's.
    EXPECT_EQ(e.values[3].buffer, e.values[4].buffer);
    for (const int v : {0, 1}) EXPECT_NE(e.values[v].buffer, e.values[4].buffer);
  }));
  EXPECT_TRUE(is_fused({.terms = {1, 3}}));
  EXPECT_TRUE(is_fused({.terms = {3, 0}}));  // what the product reads
}

TEST(FuseAdditions, OfAJoinOfRanksToo) {
  if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  plan::Plan p = Sum{}.plan();
  p.nodes[0] = {"concat", op_info("concat")->version, {{plan::Operand::value, 0}}, {3}, -1, {}};
  p.nodes[0].attrs = {{"axis", int64_t{1}}, {"numerics", std::string(op_info("concat")->numerics)}};
  const std::vector<plan::Join> joins{{0, {1}}};
  for (const bool in_step : {true, false}) {
    const Numbering numbering{{}, {}, {}, in_step ? std::span(joins) : std::span<const plan::Join>()};
    const auto made = prepare(p, {"", std::make_shared<NoGpu>()}, numbering);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)->nodes[0].fused_count, in_step);
    EXPECT_EQ((*made)->values[0].elsewhere, in_step);
  }
}

TEST(FuseAdditions, ElseNothingIs) {
  if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  EXPECT_FALSE(is_fused({}, true));                             // observed
  EXPECT_FALSE(is_fused({.product = "matmul"}));                // no such kernel
  EXPECT_FALSE(is_fused({.op = "mul"}));                        // no addition
  EXPECT_FALSE(is_fused({.terms = {3, 3}}));                    // of the result alone
  EXPECT_FALSE(is_fused({.terms = {3, 2}}));                    // a term broadcasts
  EXPECT_FALSE(is_fused({.terms = {0, 1}}));                    // not of the result
  EXPECT_FALSE(is_fused({.behind = "neg"}));                    // the product is read again
  EXPECT_FALSE(is_fused({.output = true}));                     // the product is a result
  EXPECT_FALSE(is_fused({.terms = {3, 4}, .between = "neg"}));  // not right behind the product
}

// The rate and the decay of linear attention, and an activation with its product.
TEST(FuseChains, OfNeighboursAtThePlaceOfTheLast) {
  if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  const TinyModel model(true, 3, true);
  for (const bool observed : {false, true}) {
    const auto made = prepare(model.plan, {"", std::make_shared<NoGpu>(), observed});
    ASSERT_TRUE(made) << made.error().message;
    int chains = 0, decays = 0;
    for (const PreparedNode& n : (*made)->nodes) {
      if (n.chain.empty()) continue;
      ++chains, decays += n.node->op == "neg";
      for (const size_t m : n.chain) {
        EXPECT_TRUE((*made)->nodes[m].in_chain);
        EXPECT_NE(print(**made)[m].find("in one kernel with operation "), std::string::npos);
      }
    }
    EXPECT_EQ(chains, observed ? 0 : 4);
    EXPECT_EQ(decays, observed ? 0 : 1);
  }
}

// Neighbours that one kernel can run keep their operands until all have run: here a = tanh(x),
// b = tanh(y), rope of both, whose results would else be in the memory of a.
TEST(PlanMemory, LeavesBatchesTogether) {
  if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  plan::Plan p = Sum{}.plan();  // something is fused
  const auto value = [&p](std::vector<plan::DimRef> shape) {
    p.values.push_back({DType::f32, std::move(shape), -1});
    return static_cast<int>(p.values.size()) - 1;
  };
  const auto node = [&p](const char* op, const std::vector<int>& in, int out, Attributes attrs = {}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    p.nodes.push_back({op, info->version, {}, {out}, -1, std::move(attrs)});
    for (const int v : in) p.nodes.back().in.push_back({plan::Operand::value, v});
    return out;
  };
  const std::vector<plan::DimRef> rows = {{1, -1}, {3, -1}, {96, -1}}, angles = {{1, -1}, {3, -1}, {48, -1}};
  const int x = value(rows), y = value(rows), cosines = value(angles), sines = value(angles);
  for (const int v : {x, y, cosines, sines}) p.inputs.push_back({"input " + std::to_string(v), v});
  const int a = node("tanh", {x}, value(rows)), b = node("tanh", {y}, value(rows));
  const Attributes heads{{"num_heads", int64_t{1}}};
  const size_t first = p.nodes.size();
  const int q = node("rope", {a, cosines, sines}, value(rows), heads);
  const int k = node("rope", {b, cosines, sines}, value(rows), heads);
  p.outputs.push_back({"sum of positions", node("add", {q, k}, value(rows))});
  plan::assign_slots(p);
  const auto made = prepare(p, {"", std::make_shared<NoGpu>()});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE((*made)->nodes[first + 1].concurrent);
  const std::vector<std::string> lines = print(**made);
  EXPECT_NE(lines[first + 1].find("concurrent with operation " + std::to_string(first)), std::string::npos);
  EXPECT_EQ(lines[first - 1].find("concurrent"), std::string::npos) << "a kernel that takes no batches";
}

}  // namespace
}  // namespace invar::run
