// Builds the tiny model of the tests, see tiny_model.h.
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

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

struct LayerWeights {
  Operand q, k, v, o, gate, up, down, norm1, norm2;
  std::vector<Operand> conv;     // weights and a bias of layers that convolve
  std::optional<Operand> decay;  // of layers with linear attention
};

constexpr int64_t kQ = TinyModel::kHeads * TinyModel::kHeadDim,
                  kKv = TinyModel::kKvHeads * TinyModel::kHeadDim;

LayerWeights layer_weights(Builder& b, int layer, bool hybrid) {
  constexpr int64_t kWidth = TinyModel::kWidth, kHidden = TinyModel::kHidden;
  const auto weight = [&](const char* name, std::vector<int64_t> shape, DType t, size_t file) {
    const std::string of_layer = layer ? std::to_string(layer) + "." + name : name;
    return b.weight(of_layer.c_str(), std::move(shape), t, file);
  };
  LayerWeights w;
  w.q = weight("q", {kQ, kWidth}, DType::bf16, 0), w.k = weight("k", {kKv, kWidth}, DType::bf16, 0);
  w.v = weight("v", {kKv, kWidth}, DType::f32, 1), w.o = weight("o", {kWidth, kQ}, DType::bf16, 1);
  w.gate = weight("gate", {kHidden, kWidth}, DType::bf16, 0);
  w.up = weight("up", {kHidden, kWidth}, DType::f32, 0);
  w.down = weight("down", {kWidth, kHidden}, DType::bf16, 1);
  w.norm1 = weight("norm1", {kWidth}, DType::bf16, 0), w.norm2 = weight("norm2", {kWidth}, DType::f32, 1);
  if (hybrid && layer % 4 == 0)
    w.conv = {weight("conv", {kQ, 4}, DType::bf16, 1), weight("conv_bias", {kQ}, DType::f32, 0)};
  if (hybrid && layer % 4 == 2) w.decay = weight("decay", {TinyModel::kHeads, kWidth}, DType::f32, 1);
  return w;
}

Operand add_convolution(Builder& b, const LayerWeights& w, Operand h, int state) {
  const Operand y =
      b.node("causal_conv", {b.linear(h, w.q, kQ), w.conv[0], w.conv[1]}, b.rows(kQ), {}, state);
  return b.node("silu", {y}, b.rows(kQ));
}

Operand add_linear_attention(Builder& b, const LayerWeights& w, Operand h, int state) {
  constexpr int64_t kHeads = TinyModel::kHeads, kKvHeads = TinyModel::kKvHeads;
  const Operand rate = b.node("sigmoid", {b.linear(h, *w.decay, kHeads)}, b.rows(kHeads));
  const Operand decay = b.node("neg", {rate}, b.rows(kHeads));
  const Operand q = b.linear(h, w.k, kKv), k = b.linear(h, w.v, kKv), v = b.linear(h, w.q, kQ);
  return b.node("gated_linear_attention", {q, k, v, decay}, b.rows(kQ),
                {{"key_heads", kKvHeads},
                 {"value_heads", kHeads},
                 {"scale", F32Bits{std::bit_cast<uint32_t>(0.35355338f)}}},
                state);
}

Operand add_attention(Builder& b, const LayerWeights& w, Operand h, Operand cos, Operand sin, int state) {
  constexpr int64_t kHeads = TinyModel::kHeads, kKvHeads = TinyModel::kKvHeads;
  const Attributes rope = {{"interleaved", int64_t{0}}, {"rotary_dim", int64_t{0}}};
  Attributes rope_q = rope, rope_k = rope;
  rope_q["num_heads"] = kHeads, rope_k["num_heads"] = kKvHeads;
  // Neighbours, as in compiled plans: they may run concurrently.
  const Operand plain_q = b.linear(h, w.q, kQ), plain_k = b.linear(h, w.k, kKv), v = b.linear(h, w.v, kKv);
  const Operand q = b.node("rope", {plain_q, cos, sin}, b.rows(kQ), rope_q);
  const Operand k = b.node("rope", {plain_k, cos, sin}, b.rows(kKv), rope_k);
  return b.node("attention", {q, k, v}, b.rows(kQ),
                {{"q_heads", kHeads},
                 {"kv_heads", kKvHeads},
                 {"causal", int64_t{1}},
                 {"scale", F32Bits{std::bit_cast<uint32_t>(0.35355338f)}}},
                state);
}

Operand add_layer(Builder& b, const LayerWeights& w, Operand x, Operand cos, Operand sin, int state) {
  constexpr int64_t kWidth = TinyModel::kWidth, kHidden = TinyModel::kHidden;
  const Operand h = b.norm(x, w.norm1);
  const Operand a = !w.conv.empty() ? add_convolution(b, w, h, state)
                    : w.decay       ? add_linear_attention(b, w, h, state)
                                    : add_attention(b, w, h, cos, sin, state);
  const Operand y = b.node("add", {x, b.linear(a, w.o, kWidth)}, b.rows(kWidth));
  const Operand n = b.norm(y, w.norm2);
  const Operand g = b.node("silu", {b.linear(n, w.gate, kHidden)}, b.rows(kHidden));
  const Operand m = b.node("mul", {g, b.linear(n, w.up, kHidden)}, b.rows(kHidden));
  return b.node("add", {y, b.linear(m, w.down, kWidth)}, b.rows(kWidth));
}

}  // namespace

TinyModel::TinyModel(bool with_state, int layers, bool hybrid) {
  std::string name = std::filesystem::temp_directory_path() / "invar-run-XXXXXX";
  folder = ::mkdtemp(name.data());
  Builder b(plan);
  const Operand embed = b.weight("embed", {kVocab, kWidth}, DType::bf16, 0);
  std::vector<LayerWeights> weights{layer_weights(b, 0, hybrid)};
  const Operand freq = b.constant("inv_freq", {1, 1, kHeadDim / 2}, {1.0f, 0.1f, 0.01f, 0.001f}, 1);
  for (int l = 1; l < layers; ++l) weights.push_back(layer_weights(b, l, hybrid));

  const Operand ids = b.input("input_ids"), positions = b.input("position_ids");
  const Operand column = b.node("reshape", {positions}, b.value({{0, 0}, {0, 1}, {1, -1}}, DType::i64));
  const Operand angle = b.node("mul", {b.node("cast", {column}, b.rows(1)), freq}, b.rows(kHeadDim / 2));
  const Operand cos = b.node("cos", {angle}, b.rows(kHeadDim / 2)),
                sin = b.node("sin", {angle}, b.rows(kHeadDim / 2));
  Operand x = b.node("gather", {embed, ids}, b.rows(kWidth));
  for (int l = 0; l < layers; ++l) {
    if (with_state) plan.states.push_back({"layer " + std::to_string(l)});
    x = add_layer(b, weights[l], x, cos, sin, with_state ? l : -1);
  }
  plan.outputs = {{"logits", b.linear(x, embed, kVocab).index}};
  plan::assign_slots(plan);
  b.write(folder);
}

TinyModel::~TinyModel() {
  std::filesystem::remove_all(folder);
}

}  // namespace invar::run
