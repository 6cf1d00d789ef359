#include <gtest/gtest.h>

#include <set>

#include "plan/testing.h"

namespace invar::plan {
namespace {

// Rows that a value asks for, and how many of their elements are not 0.
const std::string kPartitionProgram = R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol n
symbol rows
symbol k
input v0: f32 [n] "x"
input v1: i64 [2] "sizes"
bind rows = v1[1]
node v2: f32 [n] = neg.1(v0) {numerics="ieee"}
node v3: f32 [rows, n] = expand.1(v0) {numerics="none"}
node v4: bool [rows, n] = cast.1(v3) {numerics="convert-1"}
node v5: i64 [rows, n] = cast.1(v4) {numerics="convert-1"}
node v6: i64 [] = reduce_sum.1(v5) {axes=[0, 1], keepdims=0, numerics="row-1"}
bind k = v6[0]
node v7: f32 [n] = add.1(v0, v2) {numerics="ieee"}
node v8: f32 [2*k, n] = expand.1(v7) {numerics="none"}
node v9: f32 [n] = abs.1(v7) {numerics="ieee"}
output v8 "y"
output v9 "z"
)";
const std::string kPartitionText = kPartitionProgram + "places\nslots 0\nend\n";

std::string partition_text(const std::string& from, const std::string& to) {
  return plan::replaced(kPartitionText, from, to);
}

TEST(Bindings, AreRead) {
  const auto p = parse(kPartitionText, "x.plan");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(print(*p), kPartitionText);
  EXPECT_EQ(digest(*p), invar::sha256(kPartitionProgram));
  ASSERT_EQ(p->bindings.size(), 2u);
  EXPECT_EQ(p->symbols[p->bindings[0].symbol].text(), "rows");
  EXPECT_EQ(p->bindings[0].value, 1);
  EXPECT_EQ(p->bindings[0].element, 1);
}

TEST(Bindings, AreInTheDigest) {
  EXPECT_NE(digest(*parse(kPartitionText, "x.plan")),
            digest(*parse(partition_text("v1[1]", "v1[0]"), "x.plan")));
}

TEST(Bindings, RefusedByName) {
  const std::string rows = "bind rows = v1[1]\n", k = "bind k = v6[0]\n";
  EXPECT_EQ(refusal(partition_text(rows, "bind row = v1[1]\n")), "line 9: there is no symbol 'row'");
  EXPECT_EQ(refusal(partition_text(rows, rows + rows)),
            "line 10: symbol 'rows' is bound, or is the dimension of a value, before this line");
  EXPECT_EQ(refusal(partition_text(rows, "bind n = v1[1]\n")),
            "line 9: symbol 'n' is bound, or is the dimension of a value, before this line");
  for (const char* other : {"v1[2]", "v0[0]", "v1[18446744073709551615]"})
    EXPECT_EQ(refusal(partition_text("v1[1]", other)),
              "line 9: a symbol is bound to an element of an i64 value of rank 0 or 1 of constant size");
  EXPECT_EQ(refusal(partition_text("v1[1]", "v2[0]")), "line 9: there is no such thing (yet): 'v2[0]'");
  // It stands after the node that makes the value, and before what has the size.
  EXPECT_EQ(refusal(partition_text(k, "")).substr(0, 8), "accepted");
  std::string late = partition_text(k, "");
  late.insert(late.find("output v8"), k);
  EXPECT_EQ(refusal(late), "line 18: symbol 'k' is bound, or is the dimension of a value, before this line");
  late = partition_text(k, "");
  late.insert(late.find("node v8"), k);
  EXPECT_EQ(refusal(late), "line 15: not in canonical form; expected: bind k = v6[0]");
}

TEST(BlockPartition, CutWhereSizesBecomeKnown) {
  const BlockPartition cut = partition(*parse(kPartitionText, "x.plan"))[0];
  ASSERT_EQ(cut.segments.size(), 2u);
  const Plan whole = *parse(kPartitionText, "x.plan");
  const std::vector<std::vector<std::string>> known = {{"n", "rows"}, {"k", "2*k"}};
  for (size_t i = 0; i < known.size(); ++i) {
    std::vector<std::string> names;
    for (int s : cut.segments[i].known_symbols) names.push_back(whole.symbols[static_cast<size_t>(s)].text());
    EXPECT_EQ(names, known[i]);
    EXPECT_EQ(cut.segments[i].bindings, std::vector<int>{static_cast<int>(i)});
  }
  // A node that does not wait for a size comes before it, wherever it stands.
  const Segment &first = cut.segments[0], &second = cut.segments[1];
  EXPECT_EQ(first.node_numbers, (std::vector<int>{0, 1, 2, 3, 4, 5, 7}));
  EXPECT_EQ(second.node_numbers, (std::vector<int>{6}));
  EXPECT_EQ(first.inputs, (std::vector<int>{0}));
  EXPECT_EQ(first.outputs, (std::vector<int>{7, 6, 9}));
  EXPECT_EQ(second.inputs, (std::vector<int>{7}));
  EXPECT_EQ(second.outputs, (std::vector<int>{8}));
  // Each is a program whose buffers keep what is read behind it.
  for (const Segment& segment : cut.segments) {
    std::set<int> kept;
    for (const Port& o : segment.plan.outputs)
      EXPECT_TRUE(kept.insert(segment.plan.values[o.value].slot).second);
    for (const Port& i : segment.plan.inputs) EXPECT_EQ(segment.plan.values[i.value].slot, -1);
    EXPECT_TRUE(parse(print(segment.plan), "segment"))
        << parse(print(segment.plan), "segment").error().message;
  }
}

// More of them than a person would write.
TEST(BlockPartition, KnowOneSymbolEach) {
  std::string symbols, nodes;
  const int count = 300;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), made = std::to_string(1 + 2 * i),
                      before = std::to_string(i ? 2 * i : 0);
    symbols += "symbol s" + n + "\n";
    nodes += "node v" + made + ": i64 [1] = abs.1(v" + before + ") {numerics=\"ieee\"}\nbind s" + n + " = v" +
             made + "[0]\nnode v" + std::to_string(2 + 2 * i) + ": i64 [s" + n + "] = expand.1(v" + made +
             ") {numerics=\"none\"}\n";
  }
  const auto p = parse("invar-plan 1\nnumerics \"invar-1\"\noperations \"reproducible\"\n" + symbols +
                           "input v0: i64 [1] \"x\"\n" + nodes + "output v" + std::to_string(2 * count) +
                           " \"y\"\nplaces\nslots 0\nend\n",
                       "x.plan");
  ASSERT_TRUE(p) << p.error().message;
  const BlockPartition cut = partition(*p)[0];
  ASSERT_EQ(cut.segments.size(), static_cast<size_t>(count) + 1);
  for (const Segment& segment : cut.segments) {
    EXPECT_LE(segment.plan.symbols.size(), 2u);
    EXPECT_LE(segment.known_symbols.size(), 1u);
  }
}

TEST(BlockPartition, AProgramThatBindsNothingIsItsOnlyPart) {
  std::string text = partition_text("bind k = v6[0]\n", "");
  Plan p = *parse(text, "x.plan");
  p.bindings.clear();
  const BlockPartition cut = partition(p)[0];
  ASSERT_EQ(cut.segments.size(), 1u);
  EXPECT_EQ(print(cut.segments[0].plan), print(p));
}

}  // namespace
}  // namespace invar::plan
