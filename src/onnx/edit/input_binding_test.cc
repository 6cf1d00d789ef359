// Tests of binding inputs.
#include <gtest/gtest.h>

#include "onnx/onnx.h"

namespace invar::onnx {
namespace {

Graph binding_graph() {
  Graph g;
  g.inputs = {{"x", 1, true, {{-1, "batch"}, {4, ""}}}, {"axes", 7, true, {{2, ""}}}, {"any", 7, false, {}}};
  return g;
}
TensorRef value(std::string name, int32_t type, std::vector<int64_t> shape) {
  TensorRef t;
  t.name = std::move(name), t.data_type = type, t.shape = std::move(shape);
  return t;
}

TEST(Bind, MakesAnInitialiser) {
  Graph g = binding_graph();
  ASSERT_TRUE(bind_input(g, value("axes", 7, {2})));
  ASSERT_TRUE(bind_input(g, value("any", 7, {3, 3})));
  ASSERT_TRUE(bind_input(g, value("x", 1, {9, 4})));
  EXPECT_TRUE(g.inputs.empty());
  ASSERT_EQ(g.initializers.size(), 3u);
  EXPECT_EQ(g.initializers[0].name, "axes");
}

TEST(Bind, TakesOnlyWhatTheGraphSays) {
  const TensorRef wrong[] = {value("axes", 6, {2}), value("axes", 7, {3}), value("axes", 7, {2, 1}),
                             value("axes", 7, {}),  value("x", 1, {4, 9}), value("y", 7, {2})};
  for (const TensorRef& t : wrong) {
    Graph g = binding_graph();
    const Status s = bind_input(g, t);
    ASSERT_FALSE(s) << t.name;
    EXPECT_EQ(s.error().code, Code::bad_input);
    EXPECT_NE(s.error().message.find("'" + t.name + "'"), std::string::npos);
    EXPECT_EQ(g.inputs.size(), 3u);
  }
  Graph g = binding_graph();
  ASSERT_TRUE(bind_input(g, value("axes", 7, {2})));
  EXPECT_FALSE(bind_input(g, value("axes", 7, {2})));
}

}  // namespace
}  // namespace invar::onnx
