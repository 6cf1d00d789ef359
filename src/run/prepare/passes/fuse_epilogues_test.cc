// Fusion, aliasing and layouts: random programs whose nodes can run in each other's epilogues,
// whose buffers are reused and may be channels last, on every instruction set. They must give the
// bytes of the reference rows, which are never fused and have one layout.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/opset.h"
#include "run/function.h"
#include "run/prepare/prepare.h"
#include "run/testing.h"

namespace invar::run {
namespace {

constexpr int64_t kSide = 72;  // a few chunks, whose sizes no vector length divides

// Programs on square matrices, or on images with convolutions and their epilogues; or the latter
// with constant weights and many channels; or with convolutions of bytes, and what quantises their
// results.
enum class Kind { squares, pictures, channels, bytes };

class RandomProgram {
 public:
  RandomProgram(unsigned seed, Kind kind) : random_(seed) {
    if (kind == Kind::bytes) {
      make_bytes();
      return;
    }
    if (kind != Kind::squares) {
      make_pictures(kind == Kind::channels);
      return;
    }
    for (int i = 0; i < 3; ++i) input("square" + std::to_string(i), {kSide, kSide}), whole_.push_back(i);
    input("row", {kSide}), input("column", {kSide, 1}), input("truths", {kSide, kSide}, DType::boolean);
    truths_ = {5};
    const int nodes = 4 + below(20);
    for (int n = 0; n < nodes; ++n) step();
    // Some values have no reader; the outputs are the last value and perhaps one in the middle.
    output(whole_.back());
    if (below(2) && whole_[whole_.size() / 2] > 5) output(whole_[whole_.size() / 2]);
    plan::assign_slots(plan);
  }
  plan::Plan plan;
  Function::NamedTensors tensors;

 private:
  void make_pictures(bool constant) {
    const int64_t channels = constant ? 32 : 6;
    shape_ = {2, channels, constant ? 5 : 9, constant ? 3 : 8};
    for (int i = 0; i < 2; ++i) input("picture" + std::to_string(i), shape_), whole_.push_back(i);
    input("weights", {channels, channels, 3, 3}), input("bias", {channels});
    const Attributes padded{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
    for (int n = 4 + below(20); n > 0; --n) switch (below(6)) {
        case 0:
        case 1:
          if (constant)
            convolve(channels, below(2) ? 3 : 1);
          else
            whole_.push_back(node("conv", {any(whole_), 2, 3}, DType::f32, padded, shape_));
          break;
        case 2:
        case 3: whole_.push_back(node("relu", {any(whole_)}, DType::f32, {}, shape_)); break;
        case 4:
          if (constant)
            pool();
          else
            whole_.push_back(node("sigmoid", {any(whole_)}, DType::f32, {}, shape_));
          break;
        default: whole_.push_back(node("add", {any(whole_), any(whole_)}, DType::f32, {}, shape_));
      }
    output(whole_.back());
    if (below(2) && whole_[whole_.size() / 2] > 3) output(whole_[whole_.size() / 2]);
    plan::assign_slots(plan);
  }
  void make_bytes() {
    const int64_t channels = below(2) ? 16 : 5;
    shape_ = {2, channels, below(2) ? 7 : 33, below(2) ? 8 : 37};
    input("picture", shape_, DType::u8), bytes_ = {0};
    input("other", shape_), whole_ = {1};
    for (int n = 6 + below(20); n > 0; --n) switch (below(8)) {
        case 0:
        case 1: convolve_bytes(channels); break;
        case 2:
        case 3: quantise(); break;
        case 4: dequantise(any(bytes_), below(2) ? channels : 1); break;
        case 5:
          whole_.push_back(node(below(2) ? "relu" : "sigmoid", {any(whole_)}, DType::f32, {}, shape_));
          break;
        case 6:
          whole_.push_back(node("clip", {any(whole_)}, DType::f32,
                                {{"min", F32Bits{0xbe800000}}, {"max", F32Bits{0x3f000000}}}, shape_));
          break;
        default: whole_.push_back(node("add", {any(whole_), any(whole_)}, DType::f32, {}, shape_));
      }
    output(whole_.back()), output(bytes_.back());
    if (below(2)) output(whole_[whole_.size() / 2]);
    std::erase_if(plan.outputs, [](const plan::Port& p) { return p.value < 2; });
    if (plan.outputs.empty()) output(node("neg", {1}, DType::f32, {}, shape_));
    plan::assign_slots(plan);
  }
  void convolve_bytes(int64_t channels) {
    const int64_t groups = below(2) ? channels : 1, kernel = below(2) ? 3 : 1;
    const Attributes how{{"pads", std::vector<int64_t>(4, kernel / 2)}, {"groups", groups}};
    const int x = any(bytes_), sums = node("conv_integer", {x}, DType::i32, how, shape_);
    append(DType::i8, {channels, channels / groups, kernel, kernel});
    append(DType::i32, {channels}, "integers.bin");
    if (below(2)) append(plan.values[x].dtype, {});
    dequantise(sums, below(4) ? channels : 1);
  }
  void dequantise(int x, int64_t scales) {
    const DType integers = plan.values[x].dtype;
    const std::vector<int64_t> shape(scales > 1 ? 1 : 0, scales);
    whole_.push_back(node("dequantize_linear", {x}, DType::f32, {}, shape_));
    append(DType::f32, shape, integers == DType::i32 ? "sums.bin" : "scales.bin");
    if (integers != DType::i32 && below(2)) append(integers, shape);
  }
  void quantise() {
    const DType integers = below(3) ? DType::u8 : DType::i8;
    const std::vector<int64_t> shape(below(4) ? 0 : 1, shape_[1]);
    bytes_.push_back(node("quantize_linear", {any(whole_)}, integers, {}, shape_));
    append(DType::f32, shape, "scales.bin"), append(integers, shape);
  }
  void convolve(int64_t channels, int64_t kernel) {
    const std::vector<int64_t> pads(4, kernel / 2);
    int x = any(whole_);
    int64_t read = channels;
    if (below(3) == 0) {
      std::vector<int64_t> joined = shape_;
      joined[1] = read = 2 * channels;
      x = node("concat", {x, any(whole_)}, DType::f32, {{"axis", int64_t{1}}}, joined);
    }
    whole_.push_back(node("conv", {x}, DType::f32, {{"pads", pads}}, shape_));
    append(DType::f32, {channels, read, kernel, kernel});
    if (below(4)) append(DType::f32, {channels});
  }
  // The last node gets a constant.
  void append(DType t, const std::vector<int64_t>& shape, const char* file = "weights.bin") {
    uint64_t bytes = size_of(t);
    for (int64_t d : shape) bytes *= static_cast<uint64_t>(d);
    plan.nodes.back().in.push_back({plan::Operand::weight, static_cast<int>(plan.weights.size())});
    plan.weights.push_back({"w" + std::to_string(plan.weights.size()),
                            t,
                            shape,
                            {},
                            file,
                            4 * static_cast<uint64_t>(below(1000)),
                            bytes});
  }
  void pool() {
    Attributes attrs{{"kernel", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
    const bool most = below(2);
    if (!most) attrs["count_include_pad"] = int64_t{below(2)};
    whole_.push_back(node(most ? "max_pool" : "average_pool", {any(whole_)}, DType::f32, attrs, shape_));
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int any(const std::vector<int>& of) {  // often the last ones
    const int n = static_cast<int>(of.size());
    return of[static_cast<size_t>(below(2) ? n - 1 - below(std::min(n, 2)) : below(n))];
  }
  int value(std::vector<int64_t> shape, DType t) {
    plan::Value v{t, {}, -1};
    for (int64_t d : shape) v.shape.push_back({d, -1});
    plan.values.push_back(std::move(v));
    return static_cast<int>(plan.values.size()) - 1;
  }
  void input(const std::string& name, std::vector<int64_t> shape, DType t = DType::f32) {
    Tensor tensor{t, shape, {}};
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    for (int64_t i = 0; i < n; ++i) {
      const float x = std::ldexp(static_cast<float>(below(2000001) - 1000000), -20 - below(4));
      const size_t at = tensor.bytes.size();
      tensor.bytes.resize(at + size_of(t));
      if (t == DType::f32)
        std::memcpy(tensor.bytes.data() + at, &x, sizeof x);
      else
        tensor.bytes[at] = std::byte(below(t == DType::u8 ? 256 : 2));
    }
    tensors.push_back({name, std::move(tensor)});
    plan.inputs.push_back({name, value(std::move(shape), t)});
  }
  void output(int v) { plan.outputs.push_back({"out" + std::to_string(plan.outputs.size()), v}); }
  int node(const char* op, const std::vector<int>& in, DType t = DType::f32, Attributes attrs = {},
           std::vector<int64_t> shape = {kSide, kSide}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    plan::Node n{op, info->version, {}, {value(std::move(shape), t)}, -1, std::move(attrs)};
    for (int v : in) n.in.push_back({plan::Operand::value, v});
    plan.nodes.push_back(std::move(n));
    return plan.nodes.back().out[0];
  }
  void step() {
    static const char* const kOne[] = {"neg", "sigmoid", "relu", "tanh", "abs"};
    static const char* const kTwo[] = {"add", "mul", "sub", "max"};
    switch (below(13)) {
      case 10:
        return whole_.push_back(
            node("reshape", {node("reshape", {any(whole_)}, DType::f32, {}, {kSide * kSide})}));
      case 11: {  // rows of fusable and other results, in both orders
        const int x = any(whole_);
        const int64_t half = kSide / 2;
        std::vector<int> parts;
        for (int64_t from : {half, int64_t{0}})
          parts.push_back(
              node("slice", {x}, DType::f32,
                   {{"starts", std::vector<int64_t>{from, 0}}, {"steps", std::vector<int64_t>{1, 1}}},
                   {half, kSide}));
        if (below(2)) parts[1] = node("neg", {parts[1]}, DType::f32, {}, {half, kSide});
        return whole_.push_back(node("concat", parts, DType::f32, {{"axis", int64_t{0}}}));
      }
      case 12: {  // a column, which is not contiguous, or a row of it
        const int64_t along = below(2);
        const int part =
            node("slice", {any(whole_)}, DType::f32,
                 {{"starts", std::vector<int64_t>{below(9), along}}, {"steps", std::vector<int64_t>{1, 1}}},
                 along ? std::vector<int64_t>{9, 1} : std::vector<int64_t>{1, kSide});
        const int row =
            along
                ? node("slice", {part}, DType::f32,
                       {{"starts", std::vector<int64_t>{below(9), 0}}, {"steps", std::vector<int64_t>{1, 1}}},
                       {1, 1})
                : part;
        return whole_.push_back(node(kTwo[below(4)], {any(whole_), row}));
      }
      case 0:  // kept small
        return whole_.push_back(node("sigmoid", {node("matmul", {any(whole_), any(whole_)})}));
      case 1: return whole_.push_back(node("matmul", {any(whole_), any(whole_)}));
      case 2:
        return whole_.push_back(
            node("transpose", {any(whole_)}, DType::f32, {{"perm", std::vector<int64_t>{1, 0}}}));
      case 3: return whole_.push_back(node(kTwo[below(4)], {any(whole_), 3 + below(2)}));
      case 4: return truths_.push_back(node("less", {any(whole_), any(whole_)}, DType::boolean));
      case 5: return whole_.push_back(node("where", {any(truths_), any(whole_), any(whole_)}));
      case 6: return whole_.push_back(node("cast", {any(truths_)}));
      case 7: return whole_.push_back(node(kOne[below(5)], {any(whole_)}));
      default: return whole_.push_back(node(kTwo[below(4)], {any(whole_), any(whole_)}));
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> shape_;
  std::vector<int> whole_, truths_, bytes_;  // values of one shape
};

class Fused : public testing::TestWithParam<Kind> {
 protected:
  Fused() {
    std::string name = testing::TempDir() + "fused_XXXXXX";
    folder = ::mkdtemp(name.data());
    std::mt19937 random(7);
    std::vector<float> w(32 * 64 * 9 + 1000);
    for (float& x : w)
      x = std::ldexp(static_cast<float>(static_cast<int>(random() % 2000001) - 1000000), -24);
    write("weights.bin", w);
    std::vector<int32_t> integers(2000);
    for (int32_t& i : integers) i = static_cast<int32_t>(random() % 20001) - 10000;
    write("integers.bin", integers);
    // Scales of sums and of bytes, some of them negative or zero.
    for (const auto& [name, exponent] : {std::pair("sums.bin", -27), std::pair("scales.bin", -16)}) {
      for (float& x : w) x = std::ldexp(static_cast<float>(static_cast<int>(random() % 2048) - 64), exponent);
      write(name, w);
    }
  }
  ~Fused() override { std::filesystem::remove_all(folder); }
  template <class T>
  void write(const std::string& name, const std::vector<T>& all) const {
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(all.data()),
               static_cast<std::streamsize>(all.size() * sizeof(T)));
  }
  std::string folder;
};
INSTANTIATE_TEST_SUITE_P(Programs, Fused,
                         testing::Values(Kind::squares, Kind::pictures, Kind::channels, Kind::bytes));

std::shared_ptr<const Executable> prepared(const plan::Plan& plan, const std::string& isa = "") {
  auto made = prepare(plan, {isa, nullptr});
  if (!made) ADD_FAILURE() << made.error().message, std::abort();
  return *made;
}

TEST_P(Fused, BytesOfRandomProgramsStay) {
  size_t fused = 0, parts = 0, nodes = 0, last = 0, on_rows = 0;
  for (unsigned seed = 0; seed < (INVAR_EMULATED ? 30 : 150); ++seed) {
    const RandomProgram p(seed, GetParam());
    std::vector<std::vector<std::byte>> expected;
    const auto compare = [&](const std::string& isa, int threads) {
      Options o;
      o.isa = isa, o.threads = threads, o.check_weights = false;
      auto f = Function::open(p.plan, folder, o);
      ASSERT_TRUE(f) << f.error().message;
      for (int round = 0; round < 2; ++round) {
        const auto found = f->run(p.tensors);
        ASSERT_TRUE(found) << found.error().message;
        for (size_t i = 0; i < found->size(); ++i) {
          if (expected.size() <= i) expected.push_back((*found)[i].second.bytes);
          EXPECT_EQ((*found)[i].second.bytes, expected[i])
              << "seed " << seed << ", " << isa << ", " << threads << " threads, output " << i;
        }
      }
    };
    compare("reference", 1);
    for (std::string_view isa : ops::isas())
      for (int threads : {1, 3})
        if (isa != "reference") compare(std::string(isa), threads);
    const auto program = prepared(p.plan);
    fused += program->fused(), parts += program->views(), last += program->channels_last();
    for (const PreparedNode& n : program->nodes) on_rows += n.on_rows;
    nodes += p.plan.nodes.size();
    EXPECT_EQ(prepared(p.plan, "reference")->fused(), 0u);
    EXPECT_EQ(prepared(p.plan, "reference")->channels_last(), 0u);
  }
  if (GetParam() == Kind::channels)
    EXPECT_GT(10 * last, nodes);
  else
    EXPECT_GT(8 * fused, nodes);  // at least an eighth of them, or this tests little
  if (GetParam() == Kind::squares) {
    EXPECT_GT(8 * parts, nodes);
  }
  if (GetParam() == Kind::bytes) {
    EXPECT_GT(8 * on_rows, nodes);
  }
}

// A view is used if the viewed buffer is needed as long anyway, or not much longer.
TEST(Parts, OfAValueDoNotKeepAllOfItLong) {
  for (const bool late : {false, true}) {
    plan::Plan p;
    const auto node = [&](const char* op, const std::vector<int>& in, int64_t rows, Attributes attrs = {}) {
      const OpInfo* info = op_info(op);
      attrs["numerics"] = std::string(info->numerics);
      p.values.push_back({DType::f32, {{rows, -1}, {kSide, -1}}, -1});
      plan::Node n{op, info->version, {}, {static_cast<int>(p.values.size()) - 1}, -1, std::move(attrs)};
      for (int v : in) n.in.push_back({plan::Operand::value, v});
      p.nodes.push_back(std::move(n));
      return p.nodes.back().out[0];
    };
    p.values.push_back({DType::f32, {{kSide, -1}, {kSide, -1}}, -1});
    p.inputs.push_back({"x", 0});
    const int whole = node("matmul", {0, 0}, kSide);
    const int row = node("slice", {whole}, 1,
                         {{"starts", std::vector<int64_t>{5, 0}}, {"steps", std::vector<int64_t>{1, 1}}});
    int last = node("matmul", {whole, whole}, kSide);
    if (!late) last = node("add", {last, row}, kSide);
    for (int i = 0; i < 3; ++i) last = node("matmul", {last, last}, kSide);
    if (late) last = node("add", {last, row}, kSide);
    p.outputs.push_back({"y", last});
    plan::assign_slots(p);
    const auto program = prepared(p);
    EXPECT_EQ(program->views(), late ? 0u : 1u);
  }
}

}  // namespace
}  // namespace invar::run
