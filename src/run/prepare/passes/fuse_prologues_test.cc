// What makes the rows of products runs in their kernels on a GPU: what the pass finds, which needs
// no GPU but its kernels, and on a GPU the bytes of the host.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <unistd.h>

#include "base/opset.h"
#include "kernels/forced_route.h"
#include "kernels/registry.h"
#include "run/function.h"
#include "run/prepare/prepare.h"
#include "run/prepare/testing.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// A block of a decoder without attention on rows x [rows, k]:
//   0 v = norm(x), 1 gate = v A, 2 up = v B, 3 other = v C, 4 s = act(gate), 5 p = s up or up s,
//   6 d = p D, 7 y = d + x
struct Block {
  int64_t rows = 3, k = 96, n = 160;
  const char *norm = "rmsnorm", *act = "silu";
  bool swapped = false;        // p = up s
  const char* more = nullptr;  // 8: one more operation on `reads`
  int reads = 0;               // a value: 0 is x, i + 1 the result of node i
  int output = 0;              // one more output, a value; 0: none
  int64_t part = 0;            // columns that another rank joins behind p; 0: there is none
  int64_t bits = 0;            // of the matrices' integers (matmul_nbits_exact16); 0: f32
  int64_t zero = 0;            // 8 bits: their zero point; 4 bits: less 8

  plan::Plan plan() const {
    plan::Plan p;
    p.values.push_back({DType::f32, {{rows, -1}, {k, -1}}, -1});
    p.inputs.push_back({"x", 0});
    uint64_t offset = 0;
    const auto weight = [&](std::vector<int64_t> shape, DType type = DType::f32) {
      uint64_t bytes = size_of(type);
      for (int64_t d : shape) bytes *= static_cast<uint64_t>(d);
      p.weights.push_back(
          {"w" + std::to_string(p.weights.size()), type, shape, {}, "weights.bin", offset, bytes});
      offset += 4;
      return plan::Operand{plan::Operand::weight, static_cast<int>(p.weights.size()) - 1};
    };
    const auto node = [&](const char* op, std::vector<plan::Operand> in, int64_t columns,
                          Attributes attrs = {}) {
      const OpInfo* info = op_info(op);
      attrs["numerics"] = std::string(info->numerics);
      p.values.push_back({DType::f32, {{rows, -1}, {columns, -1}}, -1});
      const int out = static_cast<int>(p.values.size()) - 1;
      p.nodes.push_back({op, info->version, std::move(in), {out}, -1, attrs});
      return plan::Operand{plan::Operand::value, out};
    };
    const auto product = [&](plan::Operand rows_of, int64_t depth, int64_t columns) {
      if (!bits) return node("matmul_exact16", {rows_of, weight({depth, columns})}, columns);
      const int64_t block = bits == 4 ? 128 : 0, groups = bits == 4 ? (depth + block - 1) / block : 1;
      std::vector<int64_t> shape = {columns, depth}, scales = {columns};
      if (bits == 4) shape = {columns, groups, block / 2}, scales = {columns, groups};
      return node(
          "matmul_nbits_exact16", {rows_of, weight(shape, bits == 4 ? DType::u8 : DType::i8), weight(scales)},
          columns,
          {{"bits", bits}, {"block", block}, {"trans_b", int64_t{1}}, {"zero", zero + (bits == 4 ? 8 : 0)}});
    };
    const plan::Operand x{plan::Operand::value, 0};
    const auto v = node(norm, {x, weight({k})}, k);
    const auto gate = product(v, k, n), up = product(v, k, n), other = product(v, k, 65);
    const auto s = node(act, {gate}, n);
    auto made = swapped ? node("mul", {up, s}, n) : node("mul", {s, up}, n);
    if (part) {
      p.values.push_back({DType::f32, {{rows, -1}, {part, -1}}, -1});
      p.inputs.push_back({"part", static_cast<int>(p.values.size()) - 1});
      made = node("concat", {made, {plan::Operand::value, p.inputs.back().value}}, n + part,
                  {{"axis", int64_t{1}}});
    }
    const auto down = product(made, n + part, k);
    const auto y = node("add", {down, x}, k);
    p.outputs = {{"y", y.index}, {"other", other.index}};
    if (more)
      p.outputs.push_back({"more", node(more, {{plan::Operand::value, reads}},
                                        p.values[static_cast<size_t>(reads)].shape[1].value)
                                       .index});
    if (output) p.outputs.push_back({"one more", output});
    plan::assign_slots(p);
    return p;
  }
};

std::shared_ptr<const Executable> prepared_batch(const plan::Plan& p, bool observed = false,
                                                 std::span<const plan::Join> joins = {}) {
  auto made = prepare(p, {"", std::make_shared<NoGpu>(), observed}, {{}, {}, {}, joins});
  if (!made) ADD_FAILURE() << made.error().message, std::abort();
  return *made;
}
// Per node in a prologue: the node whose batch runs it.
std::map<size_t, size_t> prologues(const Executable& e) {
  std::map<size_t, size_t> all;
  for (size_t head = 0; head < e.nodes.size(); ++head)
    for (const size_t n : e.nodes[head].prologue) {
      EXPECT_TRUE(e.nodes[n].in_prologue);
      EXPECT_TRUE(e.nodes[head].prologue_kernel || e.nodes[head].prologue_join);
      all[n] = head;
    }
  for (size_t n = 0; n < e.nodes.size(); ++n) EXPECT_EQ(e.nodes[n].in_prologue, all.contains(n)) << n;
  return all;
}
using PrologueHeads = std::map<size_t, size_t>;
PrologueHeads found(const Block& block) {
  return prologues(*prepared_batch(block.plan()));
}

class FusePrologues : public testing::Test {
 protected:
  void SetUp() override {
    if (ops::gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  }
};

TEST_F(FusePrologues, NormsAndActivationsAreFound) {
  const PrologueHeads all = {{0, 1}, {4, 6}, {5, 6}};
  EXPECT_EQ(found({}), all);
  EXPECT_EQ(found({.rows = 1}), all);
  EXPECT_EQ(found({.norm = "layernorm", .act = "gelu_tanh", .swapped = true}), all);
  EXPECT_EQ(found({.more = "neg", .reads = 3}), all);  // of a product
  for (const int64_t bits : {4, 8}) EXPECT_EQ(found({.bits = bits}), all);
  const plan::Plan plan = Block{}.plan();
  const auto e = prepared_batch(plan);
  EXPECT_EQ(e->nodes[1].batch_end, 4u);
  EXPECT_TRUE(e->nodes[2].concurrent && e->nodes[3].concurrent);
  EXPECT_NE(print(*e)[5].find(": rounded in operation 6"), std::string::npos) << print(*e)[5];
  // Everything that a batch and its prologue read or write has memory of its own.
  for (const auto& [begin, end] : {std::pair{0, 4}, {4, 8}}) {
    std::map<int, int> value_in;
    for (int n = begin; n < end; ++n) {
      std::vector<int> touched = e->nodes[static_cast<size_t>(n)].node->out;
      for (const plan::Operand& o : e->nodes[static_cast<size_t>(n)].node->in)
        if (o.kind == plan::Operand::value) touched.push_back(o.index);
      for (const int v : touched) {
        const PreparedValue& value = e->values[static_cast<size_t>(v)];
        if (value.shares_slot_with >= 0) continue;
        const auto [at, is_new] = value_in.emplace(value.buffer, v);
        EXPECT_EQ(at->second, v) << "buffer " << value.buffer;
      }
    }
  }
}

// A join of ranks with what makes the own part, where rows are of whole quads.
TEST_F(FusePrologues, JoinsOfRanksAreFound) {
  const plan::Join join{6, {0, 1}};
  const auto joined = [&](const Block& block) {
    return prologues(*prepared_batch(block.plan(), false, {&join, 1}));
  };
  EXPECT_EQ(joined({.part = 32}), (PrologueHeads{{0, 1}, {4, 7}, {5, 7}, {6, 7}}));
  EXPECT_EQ(joined({.part = 32, .bits = 8}), (PrologueHeads{{0, 1}, {4, 7}, {5, 7}, {6, 7}}));
  EXPECT_EQ(joined({.act = "tanh", .part = 32}), (PrologueHeads{{0, 1}, {5, 7}, {6, 7}}));
  EXPECT_EQ(joined({.more = "neg", .reads = 6, .part = 32}), (PrologueHeads{{0, 1}, {6, 7}}));  // p
  EXPECT_EQ(joined({.part = 33}), (PrologueHeads{{0, 1}}));
  EXPECT_EQ(found({.part = 32}), (PrologueHeads{{0, 1}}));  // a concatenation
}

TEST_F(FusePrologues, WhatSomebodyElseReadsStaysInMemory) {
  const PrologueHeads act = {{4, 6}, {5, 6}}, norm = {{0, 1}}, product = {{0, 1}, {5, 6}};
  EXPECT_EQ(found({.more = "neg", .reads = 1}), act);  // the normalized rows
  EXPECT_EQ(found({.output = 1}), act);
  EXPECT_EQ(found({.more = "neg", .reads = 6}), norm);  // what the last product reads
  EXPECT_EQ(found({.output = 6}), norm);
  EXPECT_EQ(found({.more = "neg", .reads = 5}), product);  // the activation: mul alone rounds
  EXPECT_EQ(found({.output = 5}), product);
  EXPECT_EQ(found({.act = "tanh"}), product);                                    // no kernel rounds behind it
  EXPECT_EQ(found({.k = 40000, .n = 96}), act);                                  // longer than a block holds
  EXPECT_EQ(prologues(*prepared_batch(Block{}.plan(), true)), PrologueHeads());  // observed
}

TEST_F(FusePrologues, MatricesThatAreNotConstantAreLeftAlone) {
  plan::Plan p = Block{}.plan();
  p.nodes[3].in[1] = {plan::Operand::value, static_cast<int>(p.values.size())};
  p.inputs.push_back({"matrix", static_cast<int>(p.values.size())});
  p.values.push_back({DType::f32, {{96, -1}, {65, -1}}, -1});
  EXPECT_EQ(prologues(*prepared_batch(p)), (PrologueHeads{{4, 6}, {5, 6}}));
  p = Block{}.plan();
  p.nodes[3].in[0] = {plan::Operand::value, 0};  // another's rows: the batch ends before
  const auto e = prepared_batch(p);
  EXPECT_EQ(prologues(*e), (PrologueHeads{{0, 1}, {4, 6}, {5, 6}}));
  EXPECT_FALSE(e->nodes[3].concurrent);
}

// On a GPU: the bytes of the host.
class FusedPrologues : public testing::Test {
 protected:
  void SetUp() override {
    take_gpu(device_);
    if (!device_) return;
    std::string name = testing::TempDir() + "prologues_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::vector<float> w(4096 * 300 + 100);
    for (float& one : w) one = number();
    std::ofstream(folder_ + "/weights.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(w.data()),
               static_cast<std::streamsize>(w.size() * sizeof(float)));
  }
  void TearDown() override {
    ops::force_variant(0);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  float number() { return std::ldexp(static_cast<float>(random_() % 2000001) - 1000000, -24); }

  // variants: routes of the GPU's kernels (kernels/forced_route.h).
  void compare(const Block& block, std::initializer_list<int> variants = {0}) {
    Tensor x{DType::f32, {block.rows, block.k}, {}};
    x.bytes.resize(static_cast<size_t>(block.rows * block.k) * 4);
    for (int64_t i = 0; i < block.rows * block.k; ++i) {
      const float one = i / block.k == 5 ? 0.0f : i == 6 * block.k + 1 ? INFINITY : number() * 100;
      std::memcpy(x.bytes.data() + i * 4, &one, 4);
    }
    const std::vector<Function::NamedTensors> expected = results(block, x, "cpu");
    for (const int variant : variants) {
      ops::force_variant(variant);
      const std::vector<Function::NamedTensors> found = results(block, x, "cuda");
      ops::force_variant(0);
      for (size_t i = 0; i < found.size(); ++i)
        for (size_t out = 0; out < found[i].size(); ++out)
          EXPECT_EQ(found[i][out].second.bytes, expected.at(0)[out].second.bytes)
              << block.norm << ", " << block.rows << " x " << block.k << " x " << block.n << ", "
              << block.bits << " bits, output " << out << ", run " << i << ", variant " << variant;
    }
  }

 private:
  std::vector<Function::NamedTensors> results(const Block& block, const Tensor& x, const std::string& on) {
    Options o;
    o.threads = 2, o.check_weights = false, o.device = on;
    std::string text;
    o.explain = [&text](std::string_view t) { text += t; };
    auto f = Function::open(block.plan(), folder_, o);
    if (!f) ADD_FAILURE() << f.error().message, std::abort();
    std::vector<Function::NamedTensors> all;
    for (int round = 0; round < 3; ++round) {  // the last ones replay a graph
      auto y = f->run({{"x", x}});
      if (!y) ADD_FAILURE() << y.error().message, std::abort();
      all.push_back(*std::move(y));
    }
    EXPECT_EQ(text.find(": rounded in operation 6") != std::string::npos, on == "cuda") << text;
    return all;
  }
  std::shared_ptr<Device> device_;
  std::string folder_;
  std::mt19937 random_{7};
};

TEST_F(FusedPrologues, BytesOfTheHost) {
  for (const int64_t rows : {1, 8, 64, 65, 300})
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{129, 300}, {300, 4096}})
      for (const char* norm : {"rmsnorm", "layernorm"})
        compare({.rows = rows,
                 .k = k,
                 .n = n,
                 .norm = norm,
                 .act = rows == 8 ? "gelu" : "silu",
                 .swapped = rows == 65});
}

// Products of integers of few bits, by each of their kernels.
TEST_F(FusedPrologues, BytesOfTheHostFromFewBits) {
  for (const int64_t bits : {4, 8})
    for (const int64_t zero : {0, -1})
      for (const int64_t rows : {1, 8, 65, 300})
        for (const auto& [k, n] : {std::pair<int64_t, int64_t>{129, 300}, {300, 4096}})
          compare({.rows = rows, .k = k, .n = n, .bits = bits, .zero = zero}, {0, 1, 2, 3, 4});
}

}  // namespace
}  // namespace invar::run
