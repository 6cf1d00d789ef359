// The passes of prepare(): their order, and what explain() says of them.
#include <gtest/gtest.h>

#include "base/opset.h"
#include "run/function.h"
#include "run/prepare/prepare.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// v1 = x * x, v2 = a row of v1, v3 = v1 * v1, v4 = v3 + v2, v5 = v4 * v4
plan::Plan squares() {
  plan::Plan p;
  const auto node = [&](const char* op, const std::vector<int>& in, int64_t rows, Attributes attrs = {}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    p.values.push_back({DType::f32, {{rows, -1}, {72, -1}}, -1});
    plan::Node n{op, info->version, {}, {static_cast<int>(p.values.size()) - 1}, -1, std::move(attrs)};
    for (int v : in) n.in.push_back({plan::Operand::value, v});
    p.nodes.push_back(std::move(n));
  };
  p.values.push_back({DType::f32, {{72, -1}, {72, -1}}, -1});
  p.inputs.push_back({"x", 0});
  node("matmul", {0, 0}, 72);
  node("slice", {1}, 1, {{"starts", std::vector<int64_t>{5, 0}}, {"steps", std::vector<int64_t>{1, 1}}});
  node("matmul", {1, 1}, 72), node("add", {3, 2}, 72), node("matmul", {4, 4}, 72);
  p.outputs.push_back({"y", 5});
  plan::assign_slots(p);
  return p;
}

// Pass -> what explain() writes of it.
std::vector<std::pair<std::string, std::string>> explained(const plan::Plan& p, const std::string& isa,
                                                           const Numbering& numbering = {}) {
  std::vector<std::pair<std::string, std::string>> all;
  const PassObserver text = explain([&](std::string_view t) { all.back().second += t; });
  const auto made = prepare(p, {isa, nullptr}, numbering, [&](const Pass& pass, const Executable& e) {
    all.emplace_back(pass.name, "");
    text(pass, e);
  });
  EXPECT_TRUE(made) << made.error().message;
  return all;
}

// The instruction set of the tests: sanitizer builds have only that of their machine.
std::string kernels_here() {
  return std::string(ops::isas().front());
}

// The text of a pass, with ISA for the instruction set.
std::string of_pass(const std::vector<std::pair<std::string, std::string>>& all, const std::string& name) {
  const std::string isa = " " + kernels_here() + " (";
  for (const auto& [pass, text] : all) {
    if (pass != name) continue;
    std::string general = text;
    for (size_t at; (at = general.find(isa)) != std::string::npos;) general.replace(at, isa.size(), " ISA (");
    return general;
  }
  return "no such pass";
}

TEST(Prepare, ThePassesInTheirOrder) {
  const std::vector<std::string> expected = {"bind-symbols",   "select-kernels", "mark-feeds-state",
                                             "mark-constants", "alias-views",    "fuse-epilogues",
                                             "fuse-prologues", "fuse-chains",    "plan-memory",
                                             "assign-layouts", "mark-concurrent"};
  std::vector<std::string> listed, seen;
  for (const Pass& pass : passes()) listed.emplace_back(pass.name);
  EXPECT_EQ(listed, expected);
  for (const auto& [pass, text] : explained(squares(), "")) seen.push_back(pass);
  EXPECT_EQ(seen, expected);
}

TEST(Prepare, AFusedEpilogueAndAViewAreSeen) {
  const auto all = explained(squares(), kernels_here());
  EXPECT_EQ(of_pass(all, "select-kernels"),
            "pass select-kernels\n"
            "  0  v1: f32 [72, 72] = matmul ISA (v0, v0)\n"
            "  1  v2: f32 [1, 72] = slice ISA (v1)\n"
            "  2  v3: f32 [72, 72] = matmul ISA (v1, v1)\n"
            "  3  v4: f32 [72, 72] = add ISA (v3, v2)\n"
            "  4  v5: f32 [72, 72] = matmul ISA (v4, v4)\n");
  EXPECT_EQ(of_pass(all, "mark-feeds-state"), "pass mark-feeds-state: no change\n");
  EXPECT_EQ(of_pass(all, "alias-views"),
            "pass alias-views\n  1  v2: f32 [1, 72] = slice ISA (v1): view of v1 at byte 1440\n");
  EXPECT_EQ(of_pass(all, "fuse-epilogues"),
            "pass fuse-epilogues\n  3  v4: f32 [72, 72] = add ISA (v3, v2): fused into operation 2\n");
  EXPECT_NE(of_pass(all, "plan-memory").find("(v3, v2): fused into operation 2, buffer "), std::string::npos);
  EXPECT_EQ(of_pass(all, "mark-concurrent"), "pass mark-concurrent: no change\n");
}

TEST(Prepare, PartsSayTheNumbersOfTheWholePlan) {
  const std::vector<int> nodes = {10, 11, 12, 13, 14}, values = {0, 21, 22, 23, 24, 25};
  const auto all = explained(squares(), kernels_here(), {nodes, values});
  EXPECT_EQ(of_pass(all, "fuse-epilogues"),
            "pass fuse-epilogues\n  13  v24: f32 [72, 72] = add ISA (v23, v22): fused into operation 12\n");
}

TEST(Prepare, ADecodersStatesAndConcurrentNodesAreSeen) {
  const TinyModel model;
  const auto all = explained(model.plan, kernels_here());
  EXPECT_NE(of_pass(all, "mark-feeds-state").find(", \"k\"): feeds a state\n"), std::string::npos)
      << of_pass(all, "mark-feeds-state");
  EXPECT_NE(of_pass(all, "mark-concurrent").find("concurrent with operation "), std::string::npos);
}

// The explanation is of what runs, and comes only if somebody asks.
TEST(Prepare, SessionsAndFunctionsExplainThemselves) {
  const TinyModel model;
  std::string text;
  Options o = options(1, kernels_here());
  o.explain = [&text](std::string_view t) { text += t; };
  const Session session = open(model, o);
  EXPECT_TRUE(text.starts_with("pass bind-symbols: no change\npass select-kernels\n")) << text;
  text.clear();
  auto f = Function::open(squares(), "", o);
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(text, "");  // sizes are known with the first call
  ASSERT_TRUE(f->run({{"x", Tensor{DType::f32, {72, 72}, std::vector<std::byte>(72 * 72 * 4)}}}));
  EXPECT_NE(text.find("fused into operation 2"), std::string::npos) << text;
}

}  // namespace
}  // namespace invar::run
