// Programs with data-dependent sizes: run segment by segment, with the same bytes on every
// instruction set.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "kernels/registry.h"
#include "run/function.h"
#include "run/session.h"

namespace invar::run {
namespace {

// y: the elements of x that are not 0, in `rows` rows of 3, times w. The weight of the last segment
// is loaded when a size fits.
std::string program(const std::string& w) {
  return R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol n
symbol r
symbol k
weight w0 "w" f32 [3] sha256 )" +
         to_hex(sha256(w)) + R"(
input v0: f32 [n] "x"
input v1: i64 [1] "rows"
input v2: i64 [] "zero"
input v3: i64 [] "one"
bind r = v1[0]
node v4: bool [n] = cast.1(v0) {numerics="convert-1"}
node v5: i64 [n] = cast.1(v4) {numerics="convert-1"}
node v6: i64 [1] = reduce_sum.1(v5) {axes=[0], keepdims=1, numerics="row-1"}
bind k = v6[0]
node v7: i64 [n] = cumsum.1(v5) {axis=0, exclusive=0, numerics="row-1", reverse=0}
node v8: i64 [n] = iota.1(v2, v3) {numerics="ieee"}
node v9: i64 [n] = sub.1(v7, v3) {numerics="ieee"}
node v10: i64 [n] = sub.1(v8, v7) {numerics="ieee"}
node v11: i64 [n] = add.1(v10, v6) {numerics="ieee"}
node v12: i64 [n] = where.1(v4, v9, v11) {numerics="none"}
node v13: i64 [n] = scatter_elements.1(v8, v12, v8) {axis=0, numerics="ieee", reduction=0}
node v14: i64 [k] = slice.1(v13) {numerics="none", starts=[0], steps=[1]}
node v15: f32 [k] = gather.1(v0, v14) {numerics="convert-1"}
node v16: f32 [r, 3] = reshape.1(v15) {numerics="none"}
node v17: f32 [r, 3] = mul.1(v16, w0) {numerics="ieee"}
node v18: f32 [n] = neg.1(v0) {numerics="ieee"}
output v17 "y"
output v6 "count"
output v18 "n"
places
place w0 "w.bin" offset 0 length 12
slots 0
end
)";
}

class PartsTest : public testing::Test {
 protected:
  PartsTest() {
    std::string name = testing::TempDir() + "parts_XXXXXX";
    folder = ::mkdtemp(name.data());
    const float w[3] = {1, -2, 0.5f};
    bytes.assign(reinterpret_cast<const char*>(w), sizeof w);
    write(bytes);
  }
  ~PartsTest() override { std::filesystem::remove_all(folder); }
  void write(const std::string& content) const {
    std::ofstream(folder + "/w.bin", std::ios::binary) << content;
  }

  template <class T>
  static Tensor tensor(DType type, std::vector<int64_t> shape, const std::vector<T>& values) {
    Tensor t{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
    if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
    return t;
  }
  static Function::NamedTensors feed(const std::vector<float>& x, int64_t rows) {
    return {{"x", tensor(DType::f32, {static_cast<int64_t>(x.size())}, x)},
            {"rows", tensor(DType::i64, {1}, std::vector<int64_t>{rows})},
            {"zero", tensor(DType::i64, {}, std::vector<int64_t>{0})},
            {"one", tensor(DType::i64, {}, std::vector<int64_t>{1})}};
  }
  Function open(Options o) const {
    auto f = Function::open(*plan::parse(program(bytes), "p"), folder, std::move(o));
    if (!f) ADD_FAILURE() << f.error().message, std::abort();
    return *std::move(f);
  }
  static void expect(Function& f, const std::vector<float>& x, int64_t rows) {
    const auto found = f.run(feed(x, rows));
    ASSERT_TRUE(found) << found.error().message;
    std::vector<float> y, n;
    const float w[3] = {1, -2, 0.5f};
    for (float v : x) {
      if (v != 0) y.push_back(v * w[y.size() % 3]);
      n.push_back(-v);
    }
    const auto count = static_cast<int64_t>(y.size());
    EXPECT_EQ((*found)[0].second.shape, (std::vector<int64_t>{rows, 3}));
    EXPECT_EQ((*found)[0].second.bytes, tensor(DType::f32, {}, y).bytes);
    EXPECT_EQ((*found)[1].second.bytes, tensor(DType::i64, {}, std::vector{count}).bytes);
    EXPECT_EQ((*found)[2].second.bytes, tensor(DType::f32, {}, n).bytes);
  }
  std::string folder, bytes;
};

std::vector<float> numbers(size_t n, int every) {  // every `every`-th is 0
  std::vector<float> x;
  for (size_t i = 0; i < n; ++i) x.push_back(i % every == 0 ? 0.0f : 0.125f * static_cast<float>(i));
  return x;
}

TEST_F(PartsTest, EachCallHasItsSizes) {
  for (std::string_view isa : ops::isas())
    for (int threads : {1, 3}) {
      Options o;
      o.isa = isa, o.threads = threads;
      Function f = open(o);
      expect(f, numbers(1000, 4), 250);
      expect(f, numbers(1000, 4), 250);
      expect(f, {0, 0, -0.0f}, 0);
      expect(f, {}, 0);
      expect(f, numbers(6, 2), 1);
      expect(f, {0, 1, 2, 3, 0, 4, 5, 6}, 2);
      EXPECT_FALSE(f.kernels().empty());
      EXPECT_GT(f.peak_bytes(), 0u);
    }
}

TEST_F(PartsTest, SizesThatAreNoneAreErrors) {
  Function f = open({});
  const auto refusal = [&](const std::vector<float>& x, int64_t rows) {
    const auto found = f.run(feed(x, rows));
    if (found) return std::string("it runs");
    EXPECT_EQ(found.error().code, Code::bad_input);
    return found.error().message;
  };
  EXPECT_EQ(refusal({1, 2, 3}, -1), "the inputs lead to a dimension 'r' = -1, which is none, for reshape");
  EXPECT_EQ(refusal({1, 2, 3, 4}, 1),
            "operation 12 of the plan, reshape, requires as many elements in the result: sizes or values of "
            "the inputs do not fit it, or the plan does not; operands [4], result [1, 3]");
  EXPECT_NE(refusal({1, 2, 3}, INT64_MAX).find("too large"), std::string::npos);
  expect(f, {1, 2, 3}, 1);  // the next call works
}

TEST_F(PartsTest, WeightsThatWaitAreChecked) {
  write("not these bytes");
  Function f = open({});
  const auto found = f.run(feed({1, 2, 3}, 1));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::failed);
  EXPECT_NE(found.error().message.find("weight w"), std::string::npos) << found.error().message;
}

TEST_F(PartsTest, SessionsRefuseOtherInputs) {
  Options o;
  o.capacity = 16;
  const auto s = Session::open(*plan::parse(program(bytes), "p"), folder, o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, Code::not_covered);
  EXPECT_NE(s.error().message.find("cannot be fed; a session feeds input_ids"), std::string::npos);
}

}  // namespace
}  // namespace invar::run
