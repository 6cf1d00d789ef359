// What a step need not compute: results that are views of an operand, always or in steps of one
// row, and results of weights alone. The bytes are those of the plan without such nodes.
#include <map>
#include <ranges>
#include <utility>

#include "base/opset.h"
#include "run/prepare/prepare.h"
#include "run/testing.h"

namespace invar::run {
namespace {

// The model's plan, in which halves of each row of kWidth numbers come from two slices, one of them
// reshaped, and each weight of a norm is widened, or negated twice.
class Rewritten {
 public:
  explicit Rewritten(const TinyModel& model) : plan(model.plan) {
    for (plan::Node node : std::exchange(plan.nodes, {})) {
      for (plan::Operand& o : node.in)
        if (o.kind == plan::Operand::value && instead_.contains(o.index)) o.index = instead_[o.index];
      if (node.op == "rmsnorm") {
        const std::vector<plan::DimRef> shape = {{TinyModel::kWidth, -1}};
        if (plan.weights[node.in[1].index].dtype == DType::f32)
          node.in[1] = add("neg", {add("neg", {node.in[1]}, shape)}, shape), constants += 2;
        else
          node.in[1] = add("cast", {node.in[1]}, shape), ++constants;
      }
      plan.nodes.push_back(node);
      const int v = node.out[0];
      if (plan.values[v].shape == rows(TinyModel::kWidth)) instead_[v] = taken_apart(v);
    }
    plan::assign_slots(plan);
  }
  plan::Plan plan;
  int64_t constants = 0;

 private:
  static std::vector<plan::DimRef> rows(int64_t width) { return {{0, 0}, {0, 1}, {width, -1}}; }
  plan::Operand add(const char* op, std::vector<plan::Operand> in, std::vector<plan::DimRef> shape,
                    Attributes attrs = {}) {
    const OpInfo* info = op_info(op);
    attrs["numerics"] = std::string(info->numerics);
    plan.values.push_back({DType::f32, std::move(shape), -1});
    const int out = static_cast<int>(plan.values.size()) - 1;
    plan.nodes.push_back({op, info->version, std::move(in), {out}, -1, std::move(attrs)});
    return {plan::Operand::value, out};
  }
  int taken_apart(int v) {
    constexpr int64_t kHalf = TinyModel::kWidth / 2;
    const auto half = [&](int64_t start) {
      return add("slice", {{plan::Operand::value, v}}, rows(kHalf),
                 {{"starts", std::vector<int64_t>{0, 0, start}}, {"steps", std::vector<int64_t>{1, 1, 1}}});
    };
    const plan::Operand first = half(0), last = half(kHalf);
    const plan::Operand turned = add("reshape", {last}, {{0, 0}, {0, 1}, {2, -1}, {kHalf / 2, -1}});
    const plan::Operand back = add("reshape", {turned}, rows(kHalf));
    return add("concat", {first, back}, rows(TinyModel::kWidth), {{"axis", int64_t{2}}}).index;
  }
  std::map<int, int> instead_;
};

void has_the_bytes_of_the_model(Options o) {
  const TinyModel model(true, 4, true);
  const Rewritten rewritten(model);
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  auto s = Session::open(rewritten.plan, model.folder, std::move(o));
  ASSERT_TRUE(s) << s.error().message;
  for (const int piece : {kTokens, 9, 1})
    for (int round = 0; round < 3; ++round) {
      s->reset();
      EXPECT_TRUE(same_bytes(logits(*s, piece, true), truth)) << "piece " << piece << ", round " << round;
    }
}

TEST(StepViews, KeepTheBytes) {
  for (const int threads : {1, 3}) has_the_bytes_of_the_model(options(threads));
  has_the_bytes_of_the_model(options(2, "reference"));
}

TEST(StepViews, KeepTheBytesOnADevice) {
  std::shared_ptr<Device> device;
  take_gpu(device);
  if (!device) return;
  Options o = options(2);
  o.device = "cuda";
  has_the_bytes_of_the_model(o);
}

TEST(StepViews, OfSequencesToo) {
  const TinyModel model;
  const Rewritten rewritten(model);
  const std::vector<Logits> truth = alone(model, 8);
  Options o = options(2);
  o.sequences = 8;
  auto s = Session::open(rewritten.plan, model.folder, o);
  ASSERT_TRUE(s) << s.error().message;
  company_does_not_show(*s, 8, truth);
}

TEST(StepViews, AreSeen) {
  const TinyModel model;
  const Rewritten rewritten(model);
  const auto made = prepare(rewritten.plan, {});
  ASSERT_TRUE(made) << made.error().message;
  const auto count = [&](const char* what) {
    return std::ranges::count_if(
        print(**made), [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  const auto nodes = [&](const char* op) {
    return std::ranges::count(rewritten.plan.nodes, op, &plan::Node::op);
  };
  EXPECT_EQ(count(" where its bytes lie together"), nodes("slice"));
  EXPECT_EQ(count(" at byte 0"), nodes("reshape") - 1);  // that of the positions reads an input
  EXPECT_EQ(count(" constant"), rewritten.constants);
  // Where results are observed each node runs.
  const auto observed = prepare(rewritten.plan, {"", nullptr, true});
  ASSERT_TRUE(observed) << observed.error().message;
  EXPECT_EQ((*observed)->views(), 0u);
  for (const PreparedNode& n : (*observed)->nodes) EXPECT_FALSE(n.is_constant);
}

}  // namespace
}  // namespace invar::run
