// Reading and writing exchange files, and the proofs in them.
#include "dispute/exchange.h"

#include <gtest/gtest.h>

#include "dispute/proof/range_proof.h"

namespace invar::dispute {
namespace {

Computation computation() {
  return {sha256("r"), sha256("w"), sha256("p"), sha256("l"), sha256("t"), "invar-1", 3};
}
std::vector<std::string> files() {
  return {print(Trace{computation(), {{2, 0, "add.1", "Add \"x\"", "f32", {1, 3, 4}, sha256("root")}}}),
          print(Rows{computation(), 2, {sha256("0"), sha256("1"), sha256("2")}}),
          print(Values{
              computation(), 2, 1, "f32", std::string("\x00\xff", 2), {{1, 0, {"ab", "cd"}, {sha256("x")}}}}),
          print(Objection{computation(), -1, "", {}}),
          print(Question{computation(), 2, "values", 2, 1, {sha256("a")}, {sha256("b")}})};
}

TEST(Exchange, round_trip) {
  for (const std::string& text : files()) {
    const auto read = parse(text, "f.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(std::visit([](const auto& file) { return print(file); }, *read), text);
  }
}

// Cut anywhere, a file is an error of one line that names the file.
TEST(Exchange, truncated) {
  for (const std::string& text : files())
    for (size_t n = 0; n + 2 < text.size(); ++n) {
      const auto read = parse(text.substr(0, n), "f.json");
      ASSERT_FALSE(read) << n;
      EXPECT_EQ(read.error().code, Code::bad_input);
      EXPECT_EQ(read.error().message.substr(0, 7), "f.json:") << read.error().message;
      EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    }
}

TEST(Exchange, names_the_place) {
  const std::vector<std::string> all = files();
  auto with = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  const std::string root = to_hex(sha256("root"));
  const std::pair<std::string, std::string> cases[] = {
      {with(all[0], "invar-trace 1", "invar-trace 2"), "f.json: schema: expected invar-trace 1, "},
      {with(all[0], "\"positions\": 3", "\"positions\": 0"),
       "f.json: computation.positions: 0 is not a whole number"},
      {with(all[0], "\"positions\": 3", "\"positions\": \"3\""),
       "f.json: computation.positions: expected a number, found a string"},
      {with(all[0], root, root.substr(1)), "f.json: values[0].root: expected a digest of 64"},
      {with(all[0], "\"node\": 0, ", ""), "f.json: values[0]: node is missing"},
      {with(all[0], "\"node\"", "\"value\""), "f.json: values[0]: value stands there twice"},
      {with(all[0], "\"numerics\"", "\"numeric\""), "f.json: computation: numerics is missing"},
      {with(all[0], "[1, 3, 4]", "[1, 3, -4]"), "f.json: values[0].shape[2]: -4 is not a whole number"},
      {with(all[1], "\"rows\": [", "\"rows\": [7, "), "f.json: rows[0]: expected a string, found a number"},
      {with(all[1], "\"value\": 2", "\"value\": 2.0"), "f.json: value: 2.0 is not a whole number"},
      {with(all[2], "00ff", "00f"),
       "f.json: result: expected pairs of lower-case hexadecimal digits, found 3"},
      {with(all[2], "6162", "616G"), "f.json: operands[0].rows[0]: expected pairs"},
      {with(all[3], "\"step\": -1", "\"step\": -2"), "f.json: step: -2 is not a whole number"},
      {with(all[4], "\"values\"", "\"value\""),
       "f.json: asks: expected trace, rows, values or objection, found"},
      {with(all[4], "\"row\": 1", "\"row\": -1"), "f.json: row: no row is named"},
      {"[]", "f.json: expected an object, found a list"},
      {"{\"schema\": 1}", "f.json: schema: expected a string, found a number"},
      {"{\n,}", "f.json:2:1: not JSON: "},
  };
  for (const auto& [text, message] : cases) {
    const auto read = parse(text, "f.json");
    ASSERT_FALSE(read) << message;
    EXPECT_EQ(read.error().message.substr(0, message.size()), message);
  }
}

TEST(RangeProof, every_range_of_every_size) {
  std::vector<Digest> leaves;
  for (size_t n = 1; n <= 20; ++n) {
    leaves.push_back(sha256(std::to_string(n)));
    const Digest root = merkle_root(leaves);
    for (size_t first = 0; first < n; ++first)
      for (size_t last = first; last < n; ++last) {
        std::vector<Digest> known(leaves.begin() + static_cast<int64_t>(first),
                                  leaves.begin() + static_cast<int64_t>(last) + 1);
        std::vector<Digest> proof = range_proof(leaves, first, last);
        EXPECT_EQ(root_of_range(known, first, n, proof), root);
        known[0][0] ^= 1;
        EXPECT_NE(root_of_range(known, first, n, proof), root);
        known[0][0] ^= 1;
        proof.push_back(root);
        EXPECT_FALSE(root_of_range(known, first, n, proof));
        EXPECT_FALSE(root_of_range(known, n, n, proof));
        if (proof.size() > 1) {
          EXPECT_FALSE(root_of_range(known, first, n, std::span(proof).first(proof.size() - 2)));
        }
      }
  }
}

TEST(Merkle, leaves_may_come_one_by_one) {
  MerkleSum sum;
  std::vector<Digest> leaves;
  for (int n = 0; n < 70; ++n) {
    EXPECT_EQ(sum.root(), merkle_root(leaves)) << n;
    leaves.push_back(sha256(std::to_string(n)));
    sum.add(leaves.back());
  }
}

}  // namespace
}  // namespace invar::dispute
