// Loops and branches on every instruction set: conditions from values, values that grow, nested
// bodies.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/registry.h"
#include "run/function.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// Adds x to a total while the total's first element is below a limit, and at most `trips` times.
// Keeps the first elements in a list and, as a scan output, the total in odd iterations and its
// negation in even ones. Then returns the list twice, or x if `twice` is false.
constexpr char kProgram[] = R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol n
symbol m
symbol grown
symbol row
symbol after
symbol steps
symbol width
symbol chosen
input v0: f32 [n] "x"
input v1: i64 [] "trips"
input v2: bool [] "twice"
input v3: f32 [] "limit"
input v4: f32 [m] "list"
input v5: bool [] "go"
input v6: i64 [] "two"
body b0(v7: i64 [], v8: f32 [n], v9: f32 [grown], v10: f32 [n], v11: f32 [], v12: i64 [])
node v13: f32 [n] = add.1(v8, v10) {numerics="ieee"}
node v14: f32 [1] = slice.1(v13) {numerics="none", starts=[0], steps=[1]}
node v15: f32 [grown+1] = concat.1(v9, v14) {axis=0, numerics="none"}
node v16: f32 [] = reshape.1(v14) {numerics="none"}
node v17: bool [] = less.1(v16, v11) {numerics="ieee"}
node v18: i64 [] = div.1(v7, v12) {numerics="ieee"}
node v19: i64 [] = mul.1(v18, v12) {numerics="ieee"}
node v20: bool [] = less.1(v19, v7) {numerics="ieee"}
body b1(v21: f32 [n])
node v22: f32 [n] = reshape.1(v21) {numerics="none"}
give b1(v22)
body b2(v23: f32 [n])
node v24: f32 [n] = neg.1(v23) {numerics="ieee"}
give b2(v24)
node v25: f32 [row] = if.1(v20, v13) b1, b2 {}
give b0(v17, v13, v15, v25)
node v26: f32 [n], v27: f32 [after], v28: f32 [steps, width] = loop.1(v1, v5, v0, v4, v0, v3, v6) b0 {carried=2}
body b3(v29: f32 [after], v30: f32 [n])
node v31: f32 [2*after] = concat.1(v29, v29) {axis=0, numerics="none"}
give b3(v31)
body b4(v32: f32 [after], v33: f32 [n])
node v34: f32 [n] = reshape.1(v33) {numerics="none"}
give b4(v34)
node v35: f32 [chosen] = if.1(v2, v27, v0) b3, b4 {}
node v36: f32 [chosen] = neg.1(v35) {numerics="ieee"}
output v26 "total"
output v36 "list"
output v28 "each"
places
slots 1
slot v36 0
end
)";

struct Case {
  std::vector<float> x, list;
  int64_t trips;
  float limit;
  bool twice = true, go = true;
};

template <class T>
Tensor tensor(DType type, std::vector<int64_t> shape, const std::vector<T>& values) {
  Tensor t{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}
Tensor row(const std::vector<float>& values) {
  return tensor(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

Function::NamedTensors feed(const Case& c) {
  const auto flag = [](bool b) { return tensor(DType::boolean, {}, std::vector<uint8_t>{b}); };
  return {{"x", row(c.x)},
          {"trips", tensor(DType::i64, {}, std::vector<int64_t>{c.trips})},
          {"twice", flag(c.twice)},
          {"limit", tensor(DType::f32, {}, std::vector<float>{c.limit})},
          {"list", row(c.list)},
          {"go", flag(c.go)},
          {"two", tensor(DType::i64, {}, std::vector<int64_t>{2})}};
}

void expect(Function& f, const Case& c) {
  std::vector<float> total = c.x, list = c.list, each, chosen;
  int64_t steps = 0;
  for (bool again = c.go; again && steps < c.trips; ++steps) {
    for (size_t i = 0; i < total.size(); ++i) total[i] += c.x[i];
    list.push_back(total[0]);
    for (float v : total) each.push_back(steps % 2 ? v : -v);
    again = total[0] < c.limit;
  }
  if (c.twice) chosen = list, chosen.insert(chosen.end(), list.begin(), list.end());
  if (!c.twice) chosen = c.x;
  for (float& v : chosen) v = -v;
  const auto found = f.run(feed(c));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)[0].second.bytes, row(total).bytes);
  EXPECT_EQ((*found)[1].second.shape, row(chosen).shape);
  EXPECT_EQ((*found)[1].second.bytes, row(chosen).bytes);
  const int64_t width = steps ? static_cast<int64_t>(c.x.size()) : 0;
  EXPECT_EQ((*found)[2].second.shape, (std::vector<int64_t>{steps, width}));
  EXPECT_EQ((*found)[2].second.bytes, row(each).bytes);
}

Function open_loop(Options o, const std::string& text = kProgram) {
  auto p = plan::parse(text, "p");
  if (!p) ADD_FAILURE() << p.error().message, std::abort();
  auto f = Function::open(*std::move(p), "", std::move(o));
  if (!f) ADD_FAILURE() << f.error().message, std::abort();
  return *std::move(f);
}

void expect_all(Function& f) {
  const std::vector<float> x(1000, 0.125f);
  expect(f, {x, {}, 40, 3.5f});
  expect(f, {x, {7, -1}, 5, 100, false});
  expect(f, {x, {7, -1}, 6, 100});
  expect(f, {{-0.0f, 3}, {1}, 0, 100});  // no iteration
  expect(f, {{1, 3}, {}, 0, 100});
  expect(f, {{1, 3}, {1}, -5, 100, false});
  expect(f, {{1, 3}, {1}, 5, 100, true, /*go=*/false});
  expect(f, {{1, 3}, {1}, INT64_MAX, 20});  // the condition alone ends it
  expect(f, {{2}, std::vector<float>(50, 1), 1, 0});
}

TEST(Flow, StepsAndSizesOfEachCall) {
  for (std::string_view isa : ops::isas())
    for (int threads : {1, 3}) {
      Options o;
      o.isa = isa, o.threads = threads;
      Function f = open_loop(o);
      expect_all(f);
      EXPECT_GT(f.peak_bytes(), 0u);
      EXPECT_FALSE(f.kernels().empty());
    }
}

TEST(Flow, OnAGpu) {
  std::shared_ptr<Device> device;
  take_gpu(device);
  if (!device) return;
  Options o;
  o.device = "cuda";
  Function f = open_loop(o);
  expect_all(f);
}

std::string refusal(Function& f, const Case& c) {
  const auto found = f.run(feed(c));
  return found ? "it runs" : found.error().message;
}

TEST(Flow, StepsOfOtherShapesAreErrors) {
  // The list as a scan output: its shape changes.
  std::string text = kProgram;
  text.replace(text.find("give b0(v17, v13, v15, v25)"), 27, "give b0(v17, v13, v15, v15)");
  Function f = open_loop({}, text);
  EXPECT_EQ(refusal(f, {{1, 3}, {1}, 3, 100}),
            "operation 11 of the plan, loop: step 1 gives a value of shape [3], those before it [2]");
  const auto found = f.run(feed({{1, 3}, {1}, 1, 100}));  // one iteration is fine
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)[2].second.shape, (std::vector<int64_t>{1, 2}));
}

TEST(Flow, ShapesThatThePlanDoesNotSayAreErrors) {
  // The plan says that the length of the list does not change.
  std::string text = kProgram;
  const std::string results = "v27: f32 [after], v28";
  text.replace(text.find(results), results.size(), "v27: f32 [m], v28");
  for (size_t at; (at = text.find("f32 [after]")) != text.npos;) text.replace(at, 11, "f32 [m]");
  text.replace(text.find("2*after"), 7, "2*m");
  text.replace(text.find("symbol after\n"), 13, "");
  Function f = open_loop({}, text);
  EXPECT_EQ(refusal(f, {{1, 3}, {1}, 3, 100}),
            "operation 11 of the plan, loop: its results: a value has another shape than the plan says");
  EXPECT_EQ(refusal(f, {{1, 3}, {1}, 0, 100}), "it runs");
}

// The value that decides a size within the body changes with each iteration; no shape of an input
// does.
TEST(Flow, ASizeOfEachStep) {
  Function f = open_loop({}, R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol k
input v0: i64 [] "trips"
input v1: bool [] "go"
input v2: f32 [1] "x"
body b0(v3: i64 [], v4: f32 [1], v5: bool [], v6: f32 [1])
bind k = v3[0]
node v7: f32 [k] = expand.1(v6) {numerics="none"}
node v8: f32 [1] = reduce_sum.1(v7) {axes=[0], keepdims=1, numerics="row-1"}
node v9: f32 [1] = add.1(v4, v8) {numerics="ieee"}
node v10: bool [] = reshape.1(v5) {numerics="none"}
give b0(v10, v9)
node v11: f32 [1] = loop.1(v0, v1, v2, v1, v2) b0 {carried=1}
output v11 "total"
places
slots 0
end
)");
  for (int64_t trips : {1, 7, 3}) {
    const auto found = f.run({{"trips", tensor(DType::i64, {}, std::vector<int64_t>{trips})},
                              {"go", tensor(DType::boolean, {}, std::vector<uint8_t>{1})},
                              {"x", row({0.5f})}});
    ASSERT_TRUE(found) << found.error().message;
    const auto steps = static_cast<float>(trips);
    EXPECT_EQ((*found)[0].second.bytes, row({0.5f + 0.5f * steps * (steps - 1) / 2}).bytes);
  }
}

TEST(Flow, SessionsRefuseOtherInputs) {
  Options o;
  o.capacity = 16;
  const auto s = Session::open(*plan::parse(kProgram, "p"), "", o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, Code::not_covered);
  EXPECT_NE(s.error().message.find("cannot be fed; a session feeds input_ids"), std::string::npos);
}

}  // namespace
}  // namespace invar::run
