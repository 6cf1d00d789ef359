// Sessions of decoders with control flow (plan.16) or a computed size (plan.15): for any cut into
// steps, on every instruction set and any number of threads they compute the bits of the plain
// decoder, and of the same plan as a function of each prefix.
#include <gtest/gtest.h>

#include "base/opset.h"
#include "kernels/registry.h"
#include "run/function.h"
#include "run/testing.h"

namespace invar::run {
namespace {

constexpr int kLength = 24;

std::vector<int32_t> tokens() {
  std::vector<int32_t> t;
  for (int i = 0; i < kLength; ++i) t.push_back((i * 7 + 3) % 17);
  return t;
}

// Changes the tiny decoder: its last node makes the logits of the hidden rows.
class Edited {
 public:
  explicit Edited(plan::Plan p) : plan(std::move(p)) {
    hidden_ = plan.nodes.back().in[0].index, logits_ = plan.nodes.back().out[0];
    ids_ = plan.inputs[0].value, positions_ = plan.inputs[1].value;
  }
  plan::Plan plan;

  // The logits come out of an `if`, whose second body negates them twice. The first runs while a
  // token is larger than every position; the output "first" says so.
  void add_if() {
    const plan::Node product = plan.nodes.back();
    plan.nodes.pop_back();
    const int bound = reduce(ids_, {{1, -1}, {1, -1}}, {0, 1}),
              last = reduce(positions_, {{1, -1}, {1, -1}}, {0, 1});
    const int first = value(DType::boolean, {{1, -1}, {1, -1}});
    plan.nodes.push_back(node("less", {last, bound}, first));
    for (const bool negates : {false, true}) {
      plan::Body body;
      body.inputs = {value(DType::f32, plan.values[hidden_].shape)};
      body.nodes.push_back(product);
      body.nodes[0].in[0].index = body.inputs[0];
      int result = body.nodes[0].out[0] = value(DType::f32, plan.values[logits_].shape);
      for (int i = 0; negates && i < 2; ++i) {
        const int next = value(DType::f32, plan.values[logits_].shape);
        body.nodes.push_back(node("neg", {result}, next));
        result = next;
      }
      body.outputs = {result};
      plan.bodies.push_back(std::move(body));
    }
    plan::Node choice{"if",      1,  {{plan::Operand::value, first}, {plan::Operand::value, hidden_}},
                      {logits_}, -1, {}};
    choice.bodies = {0, 1};
    plan.nodes.push_back(std::move(choice));
    plan.outputs.push_back({"first", first});
    plan::assign_slots(plan);
  }

  // The logits are multiplied by max(r, ..., r) / r with as many r as the largest token says.
  void add_size() {
    const int product = plan.nodes.back().out[0] = value(DType::f32, plan.values[logits_].shape);
    const int count = reduce(ids_, {}, {0, 1}, /*keepdims=*/0);
    const int size = static_cast<int>(plan.symbols.size());
    plan.symbols.push_back(DimExpr::symbol("count")), plan.bindings.push_back({size, count, 0});
    const std::vector<plan::DimRef> one(3, {1, -1});
    const int r = reduce(hidden_, one, {0, 1, 2}), many = value(DType::f32, {{1, -1}, {1, -1}, {0, size}});
    plan.nodes.push_back(node("expand", {r}, many));
    const int most = reduce(many, one, {2}), unit = value(DType::f32, one);
    plan.nodes.push_back(node("div", {most, r}, unit));
    plan.nodes.push_back(node("mul", {product, unit}, logits_));
    plan::assign_slots(plan);
  }

 private:
  int value(DType type, std::vector<plan::DimRef> shape) {
    plan.values.push_back({type, std::move(shape), -1});
    return static_cast<int>(plan.values.size()) - 1;
  }
  static plan::Node node(const char* op, const std::vector<int>& in, int out, Attributes attrs = {}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    plan::Node n{op, info->version, {}, {out}, -1, std::move(attrs)};
    for (int v : in) n.in.push_back({plan::Operand::value, v});
    return n;
  }
  int reduce(int v, std::vector<plan::DimRef> shape, std::vector<int64_t> axes, int64_t keepdims = 1) {
    const int most = value(plan.values[v].dtype, std::move(shape));
    plan.nodes.push_back(node("reduce_max", {v}, most, {{"axes", std::move(axes)}, {"keepdims", keepdims}}));
    return most;
  }
  int hidden_, logits_, ids_, positions_;
};

enum class FlowKind { branch, size };
class Prefix : public testing::TestWithParam<FlowKind> {
 protected:
  static plan::Plan edited(const plan::Plan& plain) {
    Edited e(plain);
    GetParam() == FlowKind::branch ? e.add_if() : e.add_size();
    return std::move(e.plan);
  }
};
INSTANTIATE_TEST_SUITE_P(Decoders, Prefix, testing::Values(FlowKind::branch, FlowKind::size));

// The logits of all tokens, fed in pieces.
Logits in_pieces(Session& s, int piece, bool all) {
  const std::vector<int32_t> t = tokens();
  Logits r;
  s.reset();
  for (int i = 0; i < kLength; i += piece) {
    const auto out = s.step(std::span(t).subspan(i, std::min(piece, kLength - i)), all);
    if (!out) ADD_FAILURE() << out.error().message, std::abort();
    r.insert(r.end(), out->begin(), out->end());
  }
  return r;
}

TEST_P(Prefix, SessionsComputeTheBitsOfThePlainDecoder) {
  const TinyModel with_state, without(false);
  Session plain = open(with_state, options(1, "reference"));
  const Logits expected = in_pieces(plain, kLength, true);
  for (const TinyModel* model : {&with_state, &without}) {
    const plan::Plan plan = edited(model->plan);
    for (std::string_view isa : ops::isas())
      for (int threads : {1, 3}) {
        auto s = Session::open(plan, model->folder, options(threads, std::string(isa)));
        ASSERT_TRUE(s) << s.error().message;
        for (int piece : {1, 7, kLength}) {
          EXPECT_TRUE(same_bytes(in_pieces(*s, piece, true), expected)) << isa << ", " << threads;
          EXPECT_EQ(s->position(), kLength);
          const Logits last = in_pieces(*s, piece, false);
          EXPECT_TRUE(same_bytes(std::span(last).last(kVocab), std::span(expected).last(kVocab)));
        }
        EXPECT_GT(s->peak_bytes(), 0u);
        EXPECT_FALSE(s->kernels().empty());
        EXPECT_TRUE(s->weights_unchanged());
      }
  }
}

TEST_P(Prefix, FunctionsOfEachPrefixGiveTheSame) {
  const TinyModel model(false);
  const plan::Plan plan = edited(model.plan);
  auto s = Session::open(plan, model.folder, options());
  auto f = Function::open(plan, model.folder, options());
  ASSERT_TRUE(s && f) << s.error().message << f.error().message;
  const Logits expected = in_pieces(*s, 5, true);
  int first = 0;
  for (int64_t n = 1; n <= kLength; ++n) {
    Tensor ids{DType::i64, {1, n}, std::vector<std::byte>(static_cast<size_t>(n) * 8)}, positions = ids;
    for (int64_t i = 0; i < n; ++i) {
      reinterpret_cast<int64_t*>(ids.bytes.data())[i] = tokens()[static_cast<size_t>(i)];
      reinterpret_cast<int64_t*>(positions.bytes.data())[i] = i;
    }
    const auto out = f->run({{"input_ids", ids}, {"position_ids", positions}});
    ASSERT_TRUE(out) << out.error().message;
    const std::span all(reinterpret_cast<const float*>((*out)[0].second.bytes.data()),
                        static_cast<size_t>(n * kVocab));
    EXPECT_TRUE(same_bytes(all, std::span(expected).first(all.size()))) << n;
    if (GetParam() == FlowKind::branch) first += static_cast<int>((*out)[1].second.bytes[0]);
  }
  if (GetParam() == FlowKind::branch) {
    EXPECT_TRUE(first > 0 && first < kLength) << "both bodies run";
  }
}

TEST_P(Prefix, OneSequenceAndAFailedStep) {
  const TinyModel model;
  Options o = options();
  o.sequences = 2;
  const plan::Plan plan = edited(model.plan);
  const auto several = Session::open(plan, model.folder, o);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, Code::not_covered);
  EXPECT_EQ(several.error().message,
            "several sequences need a plan with memory between steps: run one sequence at a time");
  auto s = Session::open(plan, model.folder, options());
  ASSERT_TRUE(s) << s.error().message;
  const Logits expected = in_pieces(*s, 1, false);
  s->reset();
  const int32_t wrong[] = {1, static_cast<int32_t>(kVocab)};
  EXPECT_FALSE(s->step(wrong));
  EXPECT_EQ(s->position(), 0);
  EXPECT_TRUE(same_bytes(in_pieces(*s, 1, false), expected));
}

}  // namespace
}  // namespace invar::run
