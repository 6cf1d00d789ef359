#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing.h"

namespace invar::plan {
namespace {

// A loop and an if. The loop adds x to its carried tensor while the first element is below a limit.
// It appends these first elements to a list and scans out the negated sums. The if selects a list.
const std::string kFlowProgram = R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol n
symbol m
symbol grown
symbol after
symbol steps
symbol chosen
input v0: f32 [n] "x"
input v1: i64 [] "trips"
input v2: bool [] "go"
input v3: f32 [] "limit"
input v4: f32 [m] "list"
node v5: f32 [n] = abs.1(v0) {numerics="ieee"}
body b0(v6: i64 [], v7: f32 [n], v8: f32 [grown], v9: f32 [n], v10: f32 [])
node v11: f32 [n] = add.1(v7, v9) {numerics="ieee"}
node v12: f32 [1] = slice.1(v11) {numerics="none", starts=[0], steps=[1]}
node v13: f32 [grown+1] = concat.1(v8, v12) {axis=0, numerics="none"}
node v14: f32 [] = reshape.1(v12) {numerics="none"}
node v15: bool [] = less.1(v14, v10) {numerics="ieee"}
node v16: f32 [n] = neg.1(v11) {numerics="ieee"}
give b0(v15, v11, v13, v16)
node v17: f32 [n], v18: f32 [after], v19: f32 [steps, n] = loop.1(v1, v2, v5, v4, v0, v3) b0 {carried=2}
body b1(v20: f32 [after], v21: f32 [m])
node v22: f32 [after] = neg.1(v20) {numerics="ieee"}
give b1(v22)
body b2(v23: f32 [after], v24: f32 [m])
node v25: f32 [m] = abs.1(v24) {numerics="ieee"}
give b2(v25)
node v26: f32 [chosen] = if.1(v2, v18, v4) b1, b2 {}
node v27: f32 [2*chosen] = concat.1(v26, v26) {axis=0, numerics="none"}
output v17 "total"
output v27 "list"
output v19 "each"
)";
const std::string kFlowText = kFlowProgram + "places\nslots 0\nend\n";

std::string flow_text(const std::string& from, const std::string& to) {
  return plan::replaced(kFlowText, from, to);
}

TEST(Flow, IsRead) {
  const auto p = parse(kFlowText, "x.plan");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(print(*p), kFlowText);
  EXPECT_EQ(digest(*p), invar::sha256(kFlowProgram));
  ASSERT_EQ(p->bodies.size(), 3u);
  EXPECT_EQ(p->nodes.size(), 4u);
  EXPECT_EQ(p->nodes[1].bodies, std::vector<int>{0});
  EXPECT_EQ(p->nodes[2].bodies, (std::vector<int>{1, 2}));
  EXPECT_EQ(p->bodies[0].inputs.size(), 5u);
  EXPECT_EQ(p->bodies[0].outputs, (std::vector<int>{15, 11, 13, 16}));
}

TEST(Flow, IsCutAtItsNodes) {
  const Plan p = *parse(kFlowText, "x.plan");
  const std::vector<BlockPartition> all = partition(p);
  ASSERT_EQ(all.size(), 4u);
  const BlockPartition& main = all[0];
  ASSERT_EQ(main.segments.size(), 2u);
  EXPECT_EQ(main.node_numbers, (std::vector<int>{0, 7, 10, 11}));
  EXPECT_EQ(main.segments[0].node_numbers, std::vector<int>{0});
  EXPECT_TRUE(main.segments[0].control_flow_nodes.empty());
  EXPECT_EQ(main.segments[1].control_flow_nodes,
            (std::vector<int>{1, 2}));  // the second needs no part between them
  EXPECT_EQ(main.segments[1].inputs, std::vector<int>{26});
  EXPECT_EQ(all[1].segments[0].node_numbers, (std::vector<int>{1, 2, 3, 4, 5, 6}));
  // Each part has the symbols that occur in it, and each block knows its own.
  const auto names = [&](const std::vector<int>& symbols) {
    std::vector<std::string> all;
    for (int s : symbols) all.push_back(p.symbols[static_cast<size_t>(s)].text());
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(symbol_texts(main.segments[0].plan), (Names{"n"}));
  EXPECT_EQ(symbol_texts(main.segments[1].plan), (Names{"chosen", "2*chosen"}));
  EXPECT_EQ(names(main.segments[0].symbols), symbol_texts(main.segments[0].plan));
  EXPECT_EQ(names(main.segments[1].symbols), symbol_texts(main.segments[1].plan));
  EXPECT_EQ(names(main.segments[0].known_symbols), (Names{"n", "m"}));
  EXPECT_EQ(names(main.segments[1].known_symbols), (Names{"after", "steps", "chosen", "2*chosen"}));
  EXPECT_EQ(names(main.own_symbols), (Names{"n", "m", "after", "steps", "chosen"}));
  EXPECT_EQ(names(all[1].own_symbols), (Names{"grown"}));
  EXPECT_TRUE(all[2].own_symbols.empty());
  EXPECT_EQ(symbol_texts(all[2].segments[0].plan), (Names{"after"}));
}

TEST(Flow, CountsWhatBodiesNeed) {
  const auto f = footprint(*parse(kFlowText, "x.plan"), {});
  ASSERT_TRUE(f) << f.error().message;
  // The values that its body needs live during the loop.
  EXPECT_EQ(f->node, 1);
  EXPECT_NE(f->formula.find("grown"), std::string::npos) << f->formula;
}

TEST(Flow, RefusedByName) {
  EXPECT_EQ(refusal(flow_text("loop.1(v1, v2, v5, v4, v0, v3) b0 {carried=2}",
                              "loop.2(v1, v2, v5, v4, v0, v3) b0 {carried=2}")),
            "line 24: operation 'loop' version 2 is not in this build; it has version 1");
  EXPECT_EQ(refusal(flow_text(") b0 {carried=2}", ") {carried=2}")),
            "line 24: a node runs the bodies that stand before it");
  EXPECT_EQ(refusal(flow_text(") b1, b2 {}", ") b2, b1 {}")),
            "line 31: a node runs the bodies that stand before it");
  EXPECT_EQ(refusal(flow_text("{carried=2}", "{carried=3}")).substr(0, 30), "line 24: what a loop carries: ");
  EXPECT_EQ(refusal(flow_text("{carried=2}", "{carried=-1}")).substr(0, 9), "line 24: ");
  EXPECT_EQ(refusal(flow_text("{carried=2}", "{carried=9223372036854775807}")).substr(0, 9), "line 24: ");
  EXPECT_EQ(refusal(flow_text("add.1(v7, v9)", "add.1(v7, v0)")), "line 17: v0 is not of this body");
  EXPECT_EQ(refusal(flow_text("concat.1(v26, v26)", "concat.1(v26, v25)")),
            "line 32: v25 is not of this body");
  EXPECT_EQ(refusal(flow_text("give b0(v15, v11,", "give b0(v15, v7,")),
            "line 23: a body gives what its nodes make");
  EXPECT_EQ(refusal(flow_text("give b0", "give b1")).substr(0, 8), "line 23:");
  EXPECT_EQ(refusal(flow_text("node v25: f32 [m]", "node v25: f32 [grown]")),
            "line 29: symbol 'grown' means nothing here");
  EXPECT_EQ(refusal(flow_text("node v25: f32 [m]", "node v25: f32 [grown-1]")),
            "line 29: symbol 'grown' means nothing here");
  EXPECT_EQ(refusal(flow_text("loop.1(v1, v2,", "loop.1(v2, v1,")).substr(0, 8), "line 24:");
  EXPECT_EQ(refusal(flow_text("if.1(v2, v18, v4)", "if.1(v2, v18)")).substr(0, 8), "line 31:");
  EXPECT_EQ(refusal(flow_text("places\nslots 0\n", "places\nslots 1\nslot v18 0\n")),
            "line 38: v18 has no slot: it is of control flow");
  std::string cut = kFlowText;
  cut.erase(cut.find("node v26"), cut.find("node v27") - cut.find("node v26"));
  EXPECT_NE(refusal(cut), "accepted");
  cut = kFlowText;
  cut.erase(cut.find("give b2"), std::string("give b2(v25)\n").size());
  EXPECT_NE(refusal(cut), "accepted");
}

TEST(Flow, NestsSoFarAndNoFurther) {
  const auto nested = [](int deep) {
    std::string text =
        "invar-plan 1\nnumerics \"invar-1\"\noperations \"reproducible\"\ninput v0: bool [] \"c\"\n";
    std::string end;
    int v = 1;
    for (int d = 0; d < deep; ++d)
      text += "body b" + std::to_string(d) + "(v" + std::to_string(v++) + ": bool [])\n";
    return text + end;
  };
  EXPECT_NE(refusal(nested(64) + "x\n").find("misplaced"), std::string::npos);
  EXPECT_NE(refusal(nested(65) + "x\n").find("a body within 64 others"), std::string::npos);
}

}  // namespace
}  // namespace invar::plan
