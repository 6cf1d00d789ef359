// Builds the tiny model of the tests, see tiny_model.h.
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/opset.h"
#include "run/tiny_model.h"

namespace invar::run {
namespace {

using plan::DimRef;
using plan::Operand;

class Builder {
 public:
  explicit Builder(plan::Plan& p) : p_(p) { p_.symbols = {DimExpr::symbol("batch"), DimExpr::symbol("seq")}; }

  Operand value(std::vector<DimRef> shape, DType t = DType::f32) {
    p_.values.push_back({t, std::move(shape), -1});
    return {Operand::value, static_cast<int>(p_.values.size()) - 1};
  }
  Operand rows(int64_t width) { return value({{0, 0}, {0, 1}, {width, -1}}); }
  Operand input(const char* name) {
    const Operand v = value({{0, 0}, {0, 1}}, DType::i64);
    p_.inputs.push_back({name, v.index});
    return v;
  }
  Operand node(const char* op, std::vector<Operand> in, Operand out, Attributes attrs = {}, int state = -1) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    p_.nodes.push_back({op, info->version, std::move(in), {out.index}, state, std::move(attrs)});
    return out;
  }
  Operand linear(Operand x, Operand w, int64_t width) {
    return node("matmul", {x, w}, rows(width), {{"trans_b", int64_t{1}}});
  }
  Operand norm(Operand x, Operand w) {
    return node("rmsnorm", {x, w}, rows(TinyModel::kWidth),
                {{"epsilon", F32Bits{std::bit_cast<uint32_t>(1e-5f)}}});
  }

  // Values of both signs and of several magnitudes, so that a wrong order of a sum shows.
  Operand weight(const char* name, std::vector<int64_t> shape, DType t, size_t file) {
    plan::Weight w{name, t, shape, {}, "part-" + std::to_string(file) + ".bin", bytes_[file].size(), 0};
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    std::string data;
    for (int64_t i = 0; i < n; ++i) {
      const float significand = static_cast<float>(random() >> 40) - 0x1p23f;  // exact
      append(data, std::ldexp(significand, -24 - static_cast<int>(random() % 3)), t);
    }
    return add(std::move(w), data, file);
  }
  Operand constant(const char* name, std::vector<int64_t> shape, const std::vector<float>& values,
                   size_t file) {
    plan::Weight w{name, DType::f32, shape, {}, "part-" + std::to_string(file) + ".bin", bytes_[file].size(),
                   0};
    std::string data;
    for (float f : values) append(data, f, DType::f32);
    return add(std::move(w), data, file);
  }
  void write(const std::string& folder) const {
    for (size_t i = 0; i < 2; ++i)
      std::ofstream(folder + "/part-" + std::to_string(i) + ".bin", std::ios::binary) << bytes_[i];
  }

 private:
  uint64_t random() { return seed_ = seed_ * 6364136223846793005u + 1442695040888963407u; }
  static void append(std::string& data, float f, DType t) {
    uint32_t bits = std::bit_cast<uint32_t>(f);
    if (t == DType::bf16) bits >>= 16;
    for (size_t i = 0; i < size_of(t); ++i)
      data += static_cast<char>(bits >> 8 * i);  // little-endian everywhere
  }
  Operand add(plan::Weight w, const std::string& data, size_t file) {
    w.length = data.size();
    w.sha256 = sha256(data);
    bytes_[file] += data;
    p_.weights.push_back(std::move(w));
    return {Operand::weight, static_cast<int>(p_.weights.size()) - 1};
  }

  plan::Plan& p_;
  uint64_t seed_ = 42;
  std::string bytes_[2] = {"header", "odd"};  // so that the weights of the second file are not aligned
};

}  // namespace

TinyModel::TinyModel(bool with_state) {
  std::string name = std::filesystem::temp_directory_path() / "invar-run-XXXXXX";
  folder = ::mkdtemp(name.data());
  Builder b(plan);
  constexpr int64_t kQ = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim;
  const Operand embed = b.weight("embed", {kVocab, kWidth}, DType::bf16, 0);
  const Operand wq = b.weight("q", {kQ, kWidth}, DType::bf16, 0),
                wk = b.weight("k", {kKv, kWidth}, DType::bf16, 0);
  const Operand wv = b.weight("v", {kKv, kWidth}, DType::f32, 1),
                wo = b.weight("o", {kWidth, kQ}, DType::bf16, 1);
  const Operand gate = b.weight("gate", {kHidden, kWidth}, DType::bf16, 0);
  const Operand up = b.weight("up", {kHidden, kWidth}, DType::f32, 0);
  const Operand down = b.weight("down", {kWidth, kHidden}, DType::bf16, 1);
  const Operand norm1 = b.weight("norm1", {kWidth}, DType::bf16, 0),
                norm2 = b.weight("norm2", {kWidth}, DType::f32, 1);
  const Operand freq = b.constant("inv_freq", {1, 1, kHeadDim / 2}, {1.0f, 0.1f, 0.01f, 0.001f}, 1);

  const Operand ids = b.input("input_ids"), positions = b.input("position_ids");
  const Operand column = b.node("reshape", {positions}, b.value({{0, 0}, {0, 1}, {1, -1}}, DType::i64));
  const Operand angle = b.node("mul", {b.node("cast", {column}, b.rows(1)), freq}, b.rows(kHeadDim / 2));
  const Operand cos = b.node("cos", {angle}, b.rows(kHeadDim / 2)),
                sin = b.node("sin", {angle}, b.rows(kHeadDim / 2));

  const Operand x = b.node("gather", {embed, ids}, b.rows(kWidth));
  const Operand h = b.norm(x, norm1);
  const Attributes rope = {{"interleaved", int64_t{0}}, {"rotary_dim", int64_t{0}}};
  Attributes rope_q = rope, rope_k = rope;
  rope_q["num_heads"] = kHeads, rope_k["num_heads"] = kKvHeads;
  // Neighbours, as in compiled plans: they may run concurrently.
  const Operand plain_q = b.linear(h, wq, kQ), plain_k = b.linear(h, wk, kKv), v = b.linear(h, wv, kKv);
  const Operand q = b.node("rope", {plain_q, cos, sin}, b.rows(kQ), rope_q);
  const Operand k = b.node("rope", {plain_k, cos, sin}, b.rows(kKv), rope_k);
  if (with_state) plan.states = {{"layer 0"}};
  const Operand a = b.node("attention", {q, k, v}, b.rows(kQ),
                           {{"q_heads", kHeads},
                            {"kv_heads", kKvHeads},
                            {"causal", int64_t{1}},
                            {"scale", F32Bits{std::bit_cast<uint32_t>(0.35355338f)}}},
                           with_state ? 0 : -1);
  const Operand y = b.node("add", {x, b.linear(a, wo, kWidth)}, b.rows(kWidth));
  const Operand n = b.norm(y, norm2);
  const Operand g = b.node("silu", {b.linear(n, gate, kHidden)}, b.rows(kHidden));
  const Operand m = b.node("mul", {g, b.linear(n, up, kHidden)}, b.rows(kHidden));
  const Operand z = b.node("add", {y, b.linear(m, down, kWidth)}, b.rows(kWidth));
  plan.outputs = {{"logits", b.linear(z, embed, kVocab).index}};
  plan::assign_slots(plan);
  b.write(folder);
}

TinyModel::~TinyModel() {
  std::filesystem::remove_all(folder);
}

}  // namespace invar::run
