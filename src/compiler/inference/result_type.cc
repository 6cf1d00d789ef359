// The named rules of result types, and the table of all operations' rules.
#include "compiler/inference/result_type.h"

#include <algorithm>

#include "kernels/call.h"
#include "result_rules.inc"

namespace invar::compiler {
namespace {

// As MLIR writes it.
std::string text_of(DType type) {
  const std::string name(name_of(type));
  return type == DType::boolean ? "i1" : name[0] == 'u' ? "ui" + name.substr(1) : name;
}

Error unequal_broadcast(const Shape& x, const Shape& y) {
  const Dim one = Dim::of(1);
  bool provable = false;
  for (size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
    const Dim &p = x[x.size() - i], &q = y[y.size() - i];
    provable |= p.constant() && q.constant() && p != q && p != one && q != one;
  }
  const DimText shapes = "shapes " + text_of(x) + " and " + text_of(y);
  return provable ? bad_input(shapes + " do not broadcast")
                  : not_covered(shapes + " cannot be shown to broadcast");
}

// The scale has the shape of the innermost dimensions of x.
Status check_scale(InferredCall& in, const Shape& x, const Shape& scale) {
  if (scale.empty()) return not_covered("the scale is a scalar");
  if (scale.size() > x.size()) return bad_input("the scale has more dimensions than the operand");
  for (size_t i = 1; i <= scale.size(); ++i)
    if (!may_be_equal(x[x.size() - i], scale[scale.size() - i]))
      return in.unequal_dims(x[x.size() - i], scale[scale.size() - i], "a dimension of operand and scale");
  return {};
}

}  // namespace

ResultRule result_rule(std::string_view op) {
  const auto* row = std::lower_bound(std::begin(kResultRules), std::end(kResultRules), op,
                                     [](const auto& r, std::string_view name) { return r.first < name; });
  return row != std::end(kResultRules) && row->first == op ? row->second : nullptr;
}

Error InferredCall::unequal_dims(const Dim& a, const Dim& b, const DimText& what) {
  const DimText text = what + ": " + text_of(a) + " and " + text_of(b);
  if (a.constant() && b.constant()) return bad_input(text);
  constraint = equality_constraint(a, b);
  return not_covered(text + " cannot be shown to be equal");
}

std::optional<int64_t> InferredCall::integer(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? std::nullopt : std::optional(std::get<int64_t>(found->second));
}

DType widened(DType type) {
  return type == DType::bf16 || type == DType::f16 ? DType::f32 : type;
}

Status check_axis(int64_t axis, const Shape& shape) {
  if (axis >= 0 && axis < static_cast<int64_t>(shape.size())) return {};
  return bad_input("axis " + std::to_string(axis) + " is outside rank " + std::to_string(shape.size()));
}

Result<ValueType> infer_like(const InferredCall& in, size_t operand) {
  return in[operand];
}

Result<ValueType> infer_broadcast(const InferredCall& in) {
  Shape shape;
  for (size_t i = 0; i < in.size(); ++i) {
    std::optional<Shape> both = broadcast(shape, in[i].shape);
    if (!both) return unequal_broadcast(shape, in[i].shape);
    shape = *std::move(both);
  }
  const DType last = in[in.size() - 1].dtype, element = widened(last);
  for (size_t i = in.size() == 3 ? 1 : 0; i < in.size(); ++i) {
    const DType type = widened(in[i].dtype);
    if (type == element) continue;
    const std::string types =
        "operands of different element types: " + text_of(in[i].dtype) + " and " + text_of(last);
    // Rules compose with constants of f32.
    return element == DType::f64 || type == DType::f64 ? not_covered(types) : bad_input(types);
  }
  return ValueType{element, std::move(shape)};
}

Result<ValueType> infer_reduced(const InferredCall& in, const ops::IntegerList& axes) {
  const bool keepdims = in.integer("keepdims").value_or(0) != 0;
  const Shape& from = in[0].shape;
  Shape to;
  int64_t next = 0;  // of axes
  for (int64_t last = -1, i = 0; i < axes.size; last = axes[i++])
    if (axes[i] <= last || axes[i] >= static_cast<int64_t>(from.size()))
      return bad_input("axes are not ascending axes of the operand");
  for (size_t d = 0; d < from.size(); ++d) {
    const bool reduced = next < axes.size && axes[next] == static_cast<int64_t>(d);
    if (!reduced || keepdims) to.push_back(reduced ? Dim::of(1) : from[d]);
    next += reduced;
  }
  return ValueType{in[0].dtype, std::move(to)};
}

Result<ValueType> infer_along_axis(const InferredCall& in, int64_t axis, size_t operand) {
  const Shape& shape = in[operand].shape;
  INVAR_CHECK_OK(check_axis(axis, shape));
  if (shape[static_cast<size_t>(axis)] == Dim::of(0)) return bad_input("an axis without elements");
  return in[operand];
}

Result<ValueType> infer_norm(InferredCall& in) {
  INVAR_CHECK_OK(check_scale(in, in[0].shape, in[1].shape));
  if (in.has(2) && in[2].shape != in[1].shape) return not_covered("a bias of another shape than the scale");
  return in[0];
}

Result<ValueType> infer_norm_backward(InferredCall& in) {
  if (!may_be_equal(in[0].shape, in[1].shape)) return bad_input("a gradient of another shape than x");
  INVAR_CHECK_OK(check_scale(in, in[1].shape, in[2].shape));
  return in[1];
}

Result<ValueType> infer_norm_backward_weight(const InferredCall& in, int64_t axis) {
  const Shape& x = in[1].shape;
  if (!may_be_equal(in[0].shape, x)) return bad_input("a gradient of another shape than x");
  INVAR_CHECK_OK(check_axis(axis, x));
  const Shape scale(x.begin() + axis, x.end());
  if (std::find(scale.begin(), scale.end(), Dim::of(0)) != scale.end())
    return bad_input("a row without elements");
  return ValueType{in[1].dtype, scale};
}

Result<ValueType> with_elements(Result<ValueType> type, DType element) {
  if (type) type->dtype = element;
  return type;
}

Error unequal_shapes(const Shape& a, const Shape& b, const DimText& message) {
  const auto without_leading_ones = [](const Shape& s) {
    return Shape(std::find_if(s.begin(), s.end(), [](const Dim& e) { return e != Dim::of(1); }), s.end());
  };
  const bool may_fit = may_be_equal(a, b) || may_be_equal(without_leading_ones(a), without_leading_ones(b));
  return may_fit ? not_covered(message) : bad_input(message);
}

Error shape_error(std::initializer_list<Shape> shapes, const DimText& message) {
  for (const Shape& s : shapes)
    if (!std::all_of(s.begin(), s.end(), [](const Dim& e) { return e.constant(); }))
      return not_covered(message);
  return bad_input(message);
}

std::optional<Constraint> equality_constraint(const Dim& a, const Dim& b) {
  for (const auto& [dim, other] : {std::pair(a, b), std::pair(b, a)}) {
    const std::string* symbol = dim.expr.as_symbol();
    const std::optional<DimExpr> size = dim_expr_of(other);
    if (symbol && size && size->all_symbols([&](const std::string& name) { return name != *symbol; }))
      return Constraint{*symbol, *size};
  }
  return std::nullopt;
}

std::optional<Constraint> equality_constraint(const Shape& from, const Shape& to) {
  const std::optional<DimExpr> a = element_count(from), b = element_count(to);
  if (!a || !b) return std::nullopt;
  for (const Dim& e : from) {
    const std::optional<DimExpr> size = dim_expr_of(e), others = size ? exact_div(*a, *size) : size;
    const std::optional<DimExpr> wanted = others ? exact_div(*b, *others) : others;
    if (std::optional<Constraint> found = wanted ? equality_constraint(e, Dim::of(*wanted)) : std::nullopt)
      return found;
  }
  return std::nullopt;
}

}  // namespace invar::compiler
