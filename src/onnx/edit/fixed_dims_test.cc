// Tests of fixing dimensions.
#include <gtest/gtest.h>

#include "onnx/onnx.h"

namespace invar::onnx {
namespace {

// x [batch, seq, ?, 4], past [batch, past, past+seq] -> y [batch, seq]; a graph within a node has w
// [seq].
Graph graph() {
  Graph g;
  g.inputs = {{"x", 1, true, {{-1, "batch"}, {-1, "seq"}, {-1, ""}, {4, ""}}},
              {"past", 1, true, {{-1, "batch"}, {-1, "past"}, {-1, "past+seq"}}}};
  g.outputs = {{"y", 1, true, {{-1, "batch"}, {-1, "seq"}}}};
  g.values = {{"v", 1, true, {{-1, "past + seq"}, {-1, "inner"}}}};
  Body body{"body", {}};
  body.graph.values = {{"w", 1, true, {{-1, "seq"}}}};
  g.nodes = {{}};
  g.nodes[0].bodies = {body};
  return g;
}
using Dims = std::vector<std::pair<std::string, int64_t>>;
std::string refusal(const Dims& dims) {
  Graph g = graph();
  const Status s = fix_dims(g, dims);
  if (s) return "done";
  EXPECT_EQ(s.error().code, Code::bad_input);
  return s.error().message;
}
std::string text(const ValueInfo& v) {
  std::string all;
  for (const Dimension& d : v.shape)
    all += (all.empty() ? "" : ",") + (d.value >= 0 ? std::to_string(d.value) : d.name);
  return all;
}

TEST(Fix, EveryDimensionOfTheName) {
  Graph g = graph();
  ASSERT_TRUE(fix_dims(g, {{"seq", 3}, {"x.2", 0}, {"x.2", 0}, {"x.3", 4}}));
  EXPECT_EQ(text(g.inputs[0]), "batch,3,0,4");
  EXPECT_EQ(text(g.inputs[1]), "batch,past,past+3");
  EXPECT_EQ(text(g.outputs[0]), "batch,3");
  EXPECT_EQ(text(g.values[0]), "past+3,inner");
  EXPECT_EQ(text(g.nodes[0].bodies[0].graph.values[0]), "3");
  ASSERT_TRUE(fix_dims(g, {{"past.1", 2}}));  // has a name: all that it names
  EXPECT_EQ(text(g.inputs[1]), "batch,2,5");
  EXPECT_EQ(text(g.values[0]), "5,inner");
}

TEST(Fix, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({{"sequence", 3}}),
            "dimension 'sequence': no open dimension of the model's inputs has this name; there are 'batch', "
            "'seq', 'x.2', 'past', 'past+seq'");
  EXPECT_EQ(refusal({{"inner", 3}}).substr(0, 18), "dimension 'inner':");
  EXPECT_EQ(refusal({{"x.4", 3}}).substr(0, 16), "dimension 'x.4':");
  EXPECT_EQ(refusal({{"x.3", 5}}), "dimension 'x.3': is 4 and cannot be 5");
  EXPECT_EQ(refusal({{"seq", 5}, {"seq", 6}}), "dimension 'seq': is to be 5 and 6: give one of them");
  EXPECT_EQ(refusal({{"seq", 5}, {"x.1", 6}}), "dimension 'x.1': is to be 5 and 6: give one of them");
  EXPECT_EQ(refusal({{"seq", 5}, {"past", 1}, {"past+seq", 7}}),
            "dimension 'past+seq': is 6 and cannot be 7");
  EXPECT_EQ(refusal({{"seq", 5}, {"past", 1}, {"past+seq", 6}}), "done");
  EXPECT_EQ(refusal({{"seq", -1}}), "dimension 'seq': -1 is outside 0 to 2147483648");
  EXPECT_EQ(refusal({{"seq", int64_t{1} << 31}}), "done");
  EXPECT_EQ(refusal({{"seq", (int64_t{1} << 31) + 1}}),
            "dimension 'seq': 2147483649 is outside 0 to 2147483648");
}

TEST(Fix, ShapesOfACall) {
  Graph g = graph();
  const CallInput x{"x", DType::f32, {2, 3, 5, 4}}, past{"past", DType::f32, {2, 7, 10}};
  ASSERT_TRUE(fix_shapes(g, {past, x}));
  EXPECT_EQ(text(g.inputs[0]), "2,3,5,4");
  EXPECT_EQ(text(g.inputs[1]), "2,7,10");
  EXPECT_EQ(text(g.outputs[0]), "2,3");
  const auto refusal_of = [&](CallInput a, CallInput b) {
    Graph again = graph();
    return fix_shapes(again, {std::move(a), std::move(b)}).error().message;
  };
  EXPECT_EQ(refusal_of(x, {"past", DType::f32, {3, 7, 10}}),
            "input 'past': it is f32 [3, 7, 10], the model takes f32 [batch = 2, past, past+seq]");
  EXPECT_EQ(refusal_of(x, {"past", DType::f64, {2, 7, 10}}),
            "input 'past': it is f64 [2, 7, 10], the model takes f32 [batch, past, past+seq]");
  EXPECT_EQ(refusal_of(x, {"past", DType::f32, {2, 7, 11}}), "dimension 'past+seq': is 10 and cannot be 11");
  EXPECT_EQ(refusal_of(x, {"y", DType::f32, {2}}),
            "input 'past' is missing; input 'y': the model has none of this name");
  g.inputs[0].has_shape = false, g.inputs[0].shape.clear();
  ASSERT_TRUE(fix_shapes(g, {x, past}));
  EXPECT_EQ(text(g.inputs[0]), "2,3,5,4");
}

}  // namespace
}  // namespace invar::onnx
