// Nodes that make a part that indices may not choose.
#include "run/prepare/chosen_parts.h"

#include <gtest/gtest.h>

#include "base/opset.h"
#include "run/prepare/prepare.h"

namespace invar::run {
namespace {

enum Value : int { kX, kChoice, kSquare, kSquarePart, kDouble, kDoublePart, kAll, kOut, kIndex };

// Rows x [2, 4], of which each takes its square or its double, as `choice` says.
plan::Plan choosing(bool choice_is_late = false) {
  plan::Plan p;
  const auto value = [&](DType type, const std::vector<int64_t>& shape) {
    p.values.push_back({type, {}, -1});
    for (const int64_t d : shape) p.values.back().shape.push_back({d, -1});
  };
  const auto node = [&](const char* op, const std::vector<int>& in, int out, Attributes attrs = {}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    plan::Node n{op, info->version, {}, {out}, -1, std::move(attrs)};
    for (const int v : in) n.in.push_back({plan::Operand::value, v});
    p.nodes.push_back(std::move(n));
  };
  value(DType::f32, {2, 4}), value(DType::i64, {2, 1, 1});
  for (int i = 0; i < 2; ++i) value(DType::f32, {2, 4}), value(DType::f32, {2, 1, 4});
  value(DType::f32, {2, 2, 4}), value(DType::f32, {2, 1, 4});
  if (choice_is_late) value(DType::i64, {2, 1, 1});
  p.inputs = {{"x", kX}, {"choice", kChoice}};
  node("mul", {kX, kX}, kSquare), node("reshape", {kSquare}, kSquarePart);
  node("add", {kX, kX}, kDouble), node("reshape", {kDouble}, kDoublePart);
  node("concat", {kSquarePart, kDoublePart}, kAll, {{"axis", int64_t{1}}});
  if (choice_is_late) node("mul", {kChoice, kChoice}, kIndex);
  node("gather_nd", {kAll, choice_is_late ? kIndex : kChoice}, kOut, {{"batch_dims", int64_t{1}}});
  p.outputs.push_back({"y", kOut});
  return p;
}

std::vector<ChosenPart> parts_of(plan::Plan p) {
  plan::assign_slots(p);
  const auto made = prepare(p, {"", nullptr}, {});
  EXPECT_TRUE(made) << made.error().message;
  return made ? chosen_parts(**made) : std::vector<ChosenPart>{};
}

TEST(ChosenParts, AreOfTheNodesThatMakeThem) {
  const ChosenPart square{kChoice, 0, 2}, twice{kChoice, 1, 2}, always{};
  EXPECT_EQ(parts_of(choosing()), (std::vector{square, square, twice, twice, always, always}));
}

TEST(ChosenParts, AreNoneWhereAnybodyElseReads) {
  const std::vector<ChosenPart> always(6);
  plan::Plan p = choosing();
  p.outputs.push_back({"all", kAll});
  EXPECT_EQ(parts_of(p), always);
  p = choosing();
  p.outputs.push_back({"square", kSquare});
  const auto parts = parts_of(p);
  EXPECT_EQ(parts[0], ChosenPart{});
  EXPECT_EQ(parts[2].by, kChoice);
}

TEST(ChosenParts, AreNoneWhereNobodyHasChosenYet) {
  EXPECT_EQ(parts_of(choosing(true)), std::vector<ChosenPart>(7));
}

TEST(ChosenParts, AreReadWhereAnIndexIsTheirs) {
  int64_t indices[] = {3, -1, 0};
  ops::View by{.data = indices, .dtype = DType::i64, .rank = 1, .dim = {3}};
  const auto read = [&](int64_t part) { return is_read({0, part, 5}, by); };
  EXPECT_TRUE(read(3) && read(4) && read(0));
  EXPECT_FALSE(read(1) || read(2));
}

TEST(ChosenParts, AreOfRowsThatHaveTheirIndex) {
  int64_t indices[] = {3, 1, 0, -2, 2, 2};
  ops::View by{.data = indices, .dtype = DType::i64, .rank = 3, .dim = {3, 2, 1}};
  std::vector<int64_t> rows;
  find_rows({0, 3, 5}, by, rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 1}));
  find_rows({0, 4, 5}, by, rows);
  EXPECT_EQ(rows, std::vector<int64_t>{});
}

}  // namespace
}  // namespace invar::run
