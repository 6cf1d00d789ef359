// HannWindow, HammingWindow and BlackmanWindow.
#include "compiler/room_api.h"
#include "ops/elementwise/import/rules.h"

namespace invar::compiler {
namespace {

// Hann, Hamming and Blackman: a - b cos(2 pi i / n) + c cos(4 pi i / n), in this order, for i in
// [0, size).
Status cosine_window(NodeView& node, float a, float b, float c) {
  INVAR_CHECK_OK(node.expect(1, 1, {"output_datatype", "periodic"}));
  INVAR_TRY(const int64_t periodic, node.int_attr("periodic", 1));
  INVAR_TRY(const int64_t code, node.int_attr("output_datatype", 1));
  Type element = onnx_type(node.context(), static_cast<int32_t>(code));
  if (!element || !(element.isF32() || element.isF16() || element.isBF16()))
    return not_covered("covered are windows of f32, f16 and bf16");
  INVAR_TRY(const std::vector<DimExpr> size, node.dim_exprs(0));
  const int64_t limit = int64_t{1} << 24;  // indices below it are exact in f32
  const int64_t known = size.size() == 1 ? size[0].constant().value_or(2) : -1;
  if (known < 0) return bad_input("a window of no size");
  if (known > limit) return not_covered("a window of more than 2^24 places");
  if ((periodic ? known : known - 1) < 1) return not_covered("a window of less than two places");
  const std::optional<DimExpr> n = sum(size[0], periodic ? 0 : -1);
  if (!n) return not_covered("a window of " + text_of(size[0]));
  Value period = n->constant() ? node.constant(static_cast<float>(*n->constant())) : node.size_tensor(*n, {});
  INVAR_TRY(period, cast_to(node, period, node.builder().getF32Type()));
  INVAR_TRY(Value at, node.make<IotaOp>({node.constant(0.0f), node.constant(1.0f)}, {},
                                        tensor_of({Dim::of(size[0])}, node.builder().getF32Type())));
  auto cosine_term = [&](float cycles, float factor) -> Result<Value> {
    INVAR_TRY(Value angle, node.make<MulOp>({at, node.constant(cycles)}));
    INVAR_TRY(angle, node.make<DivOp>({angle, period}));
    INVAR_TRY(Value cosine, node.make<CospiOp>(angle));
    return node.make<MulOp>({cosine, node.constant(factor)});
  };
  INVAR_TRY(Value first, cosine_term(2, b));
  INVAR_TRY(Value out, node.make<SubOp>({node.constant(a), first}));
  if (c != 0) {
    INVAR_TRY(Value second, cosine_term(4, c));
    INVAR_TRY(out, node.make<AddOp>({out, second}));
  }
  INVAR_TRY(out, cast_to(node, out, element));
  return node.replace(out);
}

}  // namespace

void import_window_functions(RuleRegistry& registry) {
  registry.add_rule("HannWindow", 17, [](NodeView& n) { return cosine_window(n, 0.5f, 0.5f, 0); });
  registry.add_rule("HammingWindow", 17,
                    [](NodeView& n) { return cosine_window(n, 25.0f / 46, 21.0f / 46, 0); });
  registry.add_rule("BlackmanWindow", 17, [](NodeView& n) { return cosine_window(n, 0.42f, 0.5f, 0.08f); });
}

}  // namespace invar::compiler
