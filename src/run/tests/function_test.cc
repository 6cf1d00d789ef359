// Functions of tensors: inputs of many shapes, on every instruction set, and what is refused.
#include "run/function.h"

#include <functional>

#include "kernels/registry.h"
#include "run/testing.h"

namespace invar::run {
namespace {

Tensor integers(int64_t batch, int64_t length, const std::function<int64_t(int64_t row, int64_t column)>& f) {
  Tensor t{DType::i64, {batch, length}, std::vector<std::byte>(static_cast<size_t>(8 * batch * length))};
  for (int64_t i = 0; i < batch * length; ++i) {
    const int64_t v = f(i / length, i % length);
    std::memcpy(t.bytes.data() + 8 * i, &v, 8);
  }
  return t;
}
// Each row is another part of the prompt.
Function::NamedTensors feed(int64_t batch, int64_t length, int64_t first_row = 0) {
  const std::vector<int32_t> tokens = prompt();
  auto token = [&](int64_t row, int64_t column) {
    return tokens[((first_row + row) * 5 + column) % kTokens];
  };
  return {{"position_ids", integers(batch, length, [](int64_t, int64_t column) { return column; })},
          {"input_ids", integers(batch, length, token)}};
}

class FunctionTest : public testing::Test {
 protected:
  Function open(Options o) {
    auto f = Function::open(m.plan, m.folder, std::move(o));
    if (!f) ADD_FAILURE() << f.error().message, std::abort();
    return *std::move(f);
  }
  static Logits run(Function& f, const Function::NamedTensors& in) {
    auto out = f.run(in);
    if (!out) return ADD_FAILURE() << out.error().message, Logits();
    EXPECT_EQ((*out)[0].first, "logits");
    Logits r((*out)[0].second.bytes.size() / sizeof(float));
    std::memcpy(r.data(), (*out)[0].second.bytes.data(), r.size() * sizeof(float));
    return r;
  }
  TinyModel m{/*with_state=*/false};
};

TEST_F(FunctionTest, ComputesWhatASessionComputes) {
  Session s = run::open(m, options());
  const Logits truth = logits(s, kTokens, true);
  for (std::string_view isa : ops::isas())
    for (int threads : {1, 3}) {
      Function f = open(options(threads, std::string(isa)));
      EXPECT_EQ(f.isa(), isa);
      EXPECT_TRUE(same_bytes(run(f, feed(1, kTokens)), truth)) << isa << ' ' << threads;
      // Other sizes, and the first ones again.
      EXPECT_TRUE(same_bytes(run(f, feed(1, 7)), std::span(truth).first(7 * kVocab))) << isa;
      EXPECT_TRUE(same_bytes(run(f, feed(1, kTokens)), truth)) << isa;
      EXPECT_GT(f.peak_bytes(), 0u);
    }
}

TEST_F(FunctionTest, ASequenceDoesNotSeeTheOthers) {
  Function f = open(options(2));
  const Logits together = run(f, feed(3, 40));
  ASSERT_EQ(together.size(), 3u * 40 * kVocab);
  for (int64_t row = 0; row < 3; ++row)
    EXPECT_TRUE(
        same_bytes(run(f, feed(1, 40, row)), std::span(together).subspan(row * 40 * kVocab, 40 * kVocab)))
        << row;
}

TEST_F(FunctionTest, RefusesWhatDoesNotFit) {
  Function f = open(options());
  auto refused = [&](Function::NamedTensors in, const std::string& part) {
    const auto out = f.run(in);
    ASSERT_FALSE(out);
    EXPECT_NE(out.error().message.find(part), std::string::npos) << out.error().message;
  };
  refused({}, "inputs 'input_ids', 'position_ids' are missing");
  Function::NamedTensors in = feed(1, 4);
  in[1].second.bytes.pop_back();
  refused(in, "input 'input_ids'");
  in = feed(1, 4), in[1].second.shape = {4};
  refused(in, "it is i64 [4], the plan takes i64 [batch, seq]");
  in = feed(1, 4), in[0] = feed(1, 5)[0];
  refused(in, "the plan takes i64 [batch, seq = 4]");
  EXPECT_FALSE(run(f, feed(1, 4)).empty());  // it still works

  TinyModel remembers;
  const auto session_only = Function::open(remembers.plan, remembers.folder, options());
  ASSERT_FALSE(session_only);
  EXPECT_EQ(session_only.error().code, Code::not_covered);
}

}  // namespace
}  // namespace invar::run
