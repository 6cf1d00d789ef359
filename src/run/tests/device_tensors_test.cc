// Inputs and outputs in device memory, for programs of one and of several segments; and on the
// host, outputs in the caller's memory. Without a GPU, tests that need one are skipped, or fail if
// the build was promised one (INVAR_GPU).
#include "base/opset.h"
#include "device/memory.h"
#include "run/function.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// y = e^x [n], and z = its first k elements, doubled, where k = count + count is data-dependent, so
// z is of another segment. Returns x, too.
plan::Plan doubled(bool bound) {
  plan::Plan p;
  auto value = [&p](DType t, std::vector<plan::DimRef> shape) {
    p.values.push_back({t, std::move(shape), -1});
    return static_cast<int>(p.values.size()) - 1;
  };
  auto node = [&p](const char* op, std::vector<int> in, int out, Attributes attrs = {}) {
    const OpInfo* const info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    plan::Node& n = p.nodes.emplace_back(plan::Node{op, info->version, {}, {out}, -1, std::move(attrs)});
    for (int v : in) n.in.push_back({plan::Operand::value, v});
    return out;
  };
  p.symbols = {DimExpr::symbol("n"), DimExpr::symbol("k")};
  const plan::DimRef n{0, 0}, k = bound ? plan::DimRef{0, 1} : plan::DimRef{4, -1};
  const int x = value(DType::f32, {n}), count = value(DType::i64, {{1, -1}});
  const int y = node("exp", {x}, value(DType::f32, {n}));
  const int twice = node("add", {count, count}, value(DType::i64, {{1, -1}}));
  const Attributes from = {{"starts", std::vector<int64_t>{0}}, {"steps", std::vector<int64_t>{1}}};
  const int first = node("slice", {y}, value(DType::f32, {k}), from);
  const int z = node("add", {first, first}, value(DType::f32, {k}));
  p.inputs = {{"x", x}, {"count", count}};
  p.outputs = {{"z", z}, {"y", y}, {"k", twice}, {"x", x}};
  if (bound)
    p.bindings = {{1, twice, 0}};
  else
    p.symbols.pop_back();
  plan::assign_slots(p);
  return p;
}

Function::NamedTensors inputs_of(int64_t n, int64_t count) {
  Tensor x{DType::f32, {n}, std::vector<std::byte>(static_cast<size_t>(n) * 4)};
  for (int64_t i = 0; i < n; ++i) {
    const float f = static_cast<float>(i * 37 % 101) / 16 - 3;
    std::memcpy(x.bytes.data() + 4 * i, &f, 4);
  }
  Tensor c{DType::i64, {1}, std::vector<std::byte>(8)};
  std::memcpy(c.bytes.data(), &count, 8);
  return {{"x", std::move(x)}, {"count", std::move(c)}};
}
Function::NamedViews views_of(const Function::NamedTensors& tensors) {
  Function::NamedViews views;
  for (const auto& [name, t] : tensors) views.push_back({name, {t.dtype, t.shape, t.bytes}});
  return views;
}
Function open(const plan::Plan& plan, const std::string& device) {
  Options o = options(2);
  o.device = device;
  auto f = Function::open(plan, ".", o);
  if (!f) ADD_FAILURE() << f.error().message, std::abort();
  return *std::move(f);
}
void expect_same(const Function::NamedTensors& a, const Function::NamedTensors& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].first == b[i].first && a[i].second.dtype == b[i].second.dtype &&
                a[i].second.shape == b[i].second.shape && a[i].second.bytes == b[i].second.bytes)
        << what << ", " << a[i].first;
}

// Recurring sizes, recorded and replayed graphs, and empty tensors.
struct Call {
  int64_t n, count;
};
constexpr Call kCalls[] = {{9, 2}, {9, 2}, {9, 4}, {200, 2}, {9, 2}, {5, 0}, {4, 2}};

TEST(Places, ResultsLieWhereTheCallerSays) {
  Function f = open(doubled(true), "cpu");
  EXPECT_EQ(f.device(), -1);
  for (const auto& [n, count] : kCalls) {
    const Function::NamedTensors in = inputs_of(n, count);
    const auto truth = f.run(in);
    ASSERT_TRUE(truth) << truth.error().message;
    EXPECT_EQ((*truth)[0].second.shape, std::vector<int64_t>{2 * count});
    Function::NamedTensors found(4);
    size_t next = 0;
    const Status done =
        f.run(views_of(in), [&](const std::string& name, DType t, std::span<const int64_t> shape) {
          auto& [called, tensor] = found[next++];
          called = name, tensor.dtype = t, tensor.shape.assign(shape.begin(), shape.end());
          tensor.bytes.resize((*truth)[next - 1].second.bytes.size());
          return Result<void*>(tensor.bytes.data());
        });
    ASSERT_TRUE(done) << done.error().message;
    expect_same(found, *truth, "host");
  }
  const Status none = f.run(views_of(inputs_of(9, 2)),
                            [](auto&, DType, auto) { return Result<void*>(bad_input("no place")); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no place");
}

// An input that is returned is not produced by the program.
TEST(Places, CutOrNotTheSameBytes) {
  Function cut = open(doubled(true), "cpu"), whole = open(doubled(false), "cpu");
  for (const auto& [n, count] : kCalls) {
    if (count != 2) continue;
    const Function::NamedTensors in = inputs_of(n, count);
    const auto a = cut.run(in), b = whole.run(in);
    ASSERT_TRUE(a && b);
    expect_same(*a, *b, "n " + std::to_string(n));
  }
}

TEST(Places, WhatLiesOnAnotherDeviceIsRefused) {
  Function f = open(doubled(true), "cpu");
  const Function::NamedTensors in = inputs_of(9, 2);
  Function::NamedViews views = views_of(in);
  views[1].second.device = 3;
  const auto out = f.run(views);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "input 'count': it lies on cuda:3, the program runs on the host");
}

class OnAGpu : public testing::Test {
 protected:
  void SetUp() override { take_gpu(device_); }
  // Copies a tensor to the device. The copy is on another queue than the function's, so it is
  // waited for.
  void move_there(std::pair<std::string, TensorView>& named) {
    TensorView& v = named.second;
    Allocation& b = allocations_.emplace_back(
        *Allocation::make(std::max<size_t>(v.bytes.size(), 1), "a tensor", device_));
    ASSERT_TRUE(device_->upload(b.data(), v.bytes.data(), v.bytes.size()));
    ASSERT_TRUE(device_->wait());
    v.bytes = {b.data(), v.bytes.size()}, v.device = 0;
  }
  // Outputs in device memory, downloaded.
  Function::NamedTensors run_there(Function& f, const Function::NamedViews& views) {
    Function::NamedTensors found;
    std::vector<Allocation> places;
    const Status done =
        f.run(views, [&](const std::string& name, DType t, std::span<const int64_t> shape) -> Result<void*> {
          Tensor& tensor = found.emplace_back(name, Tensor{t, {shape.begin(), shape.end()}, {}}).second;
          size_t bytes = size_of(t);
          for (const int64_t d : shape) bytes *= static_cast<size_t>(d);
          tensor.bytes.resize(bytes);
          return places.emplace_back(*Allocation::make(std::max<size_t>(bytes, 1), "a result", device_))
              .data();
        });
    EXPECT_TRUE(done) << done.error().message;
    for (size_t i = 0; i < places.size(); ++i)
      EXPECT_TRUE(
          device_->download(found[i].second.bytes.data(), places[i].data(), found[i].second.bytes.size()));
    EXPECT_TRUE(device_->wait());
    return found;
  }
  std::shared_ptr<Device> device_;
  std::vector<Allocation> allocations_;
};

TEST_F(OnAGpu, InputsAndResultsThereOrHereTheSameBytes) {
  for (const bool bound : {false, true}) {
    const plan::Plan plan = doubled(bound);
    Function host = open(plan, "cpu"), f = open(plan, "cuda");
    EXPECT_EQ(f.device(), 0);
    EXPECT_NE(f.stream(), nullptr);
    for (const auto& [n, count] : kCalls) {
      const Function::NamedTensors in = inputs_of(n, count);
      if (!bound && n < 4) continue;
      const auto truth = host.run(in);
      ASSERT_TRUE(truth) << truth.error().message;
      for (int there = 0; there < 8;
           ++there) {  // which inputs are on the device; twice each, so that a graph is replayed
        Function::NamedViews views = views_of(in);
        for (int i : {0, 1})
          if (there >> i & 1) move_there(views[static_cast<size_t>(i)]);
        const std::string what = "bound " + std::to_string(bound) + ", n " + std::to_string(n) + ", there " +
                                 std::to_string(there);
        const auto here = f.run(views);
        ASSERT_TRUE(here) << here.error().message;
        expect_same(*here, *truth, what + ", results here");
        expect_same(run_there(f, views), *truth, what + ", results there");
      }
    }
  }
}

TEST_F(OnAGpu, ANetworkWithTensorsThere) {
  const TinyModel m(/*with_state=*/false);
  Options o = options(2);
  o.device = "cuda";
  auto host = Function::open(m.plan, m.folder, options(2)), there = Function::open(m.plan, m.folder, o);
  ASSERT_TRUE(host && there);
  for (const int64_t length : {7, 1, 40, 7}) {
    Function::NamedTensors in;
    for (const char* name : {"input_ids", "position_ids"}) {
      Tensor t{DType::i64, {2, length}, std::vector<std::byte>(static_cast<size_t>(16 * length))};
      for (int64_t i = 0; i < 2 * length; ++i) {
        const int64_t v = name[0] == 'p' ? i % length : prompt()[static_cast<size_t>(i)];
        std::memcpy(t.bytes.data() + 8 * i, &v, 8);
      }
      in.push_back({name, std::move(t)});
    }
    Function::NamedViews views = views_of(in);
    for (auto& named : views) move_there(named);
    const auto truth = host->run(in);
    ASSERT_TRUE(truth) << truth.error().message;
    for (int round = 0; round < 3; ++round)
      expect_same(run_there(*there, views), *truth, "length " + std::to_string(length));
    // An out-of-bounds index is found as on the host, and the next call works.
    Function::NamedTensors wrong = in;
    std::memset(wrong[0].second.bytes.data(), 0x7f, 8);
    Function::NamedViews wrong_there = views_of(wrong);
    for (auto& named : wrong_there) move_there(named);
    const auto refused = there->run(wrong_there);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("gather: index "), std::string::npos) << refused.error().message;
    expect_same(run_there(*there, views), *truth, "after what was refused");
  }
}

TEST_F(OnAGpu, WhatLiesOnAnotherGpuIsRefused) {
  Function f = open(doubled(true), "cuda");
  const Function::NamedTensors in = inputs_of(9, 2);
  Function::NamedViews views = views_of(in);
  views[0].second.device = 5;
  const auto out = f.run(views);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "input 'x': it lies on cuda:5, the program runs on cuda:0");
}

}  // namespace
}  // namespace invar::run
