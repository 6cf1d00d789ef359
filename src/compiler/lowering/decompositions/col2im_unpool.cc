// Col2Im and MaxUnpool as scatters, Det of small matrices, and the Optional operators.
#include "compiler/lowering/builders/expr_builder.h"
#include "compiler/lowering/builders/sliding_window.h"

namespace invar::compiler {
namespace {

// Adds every column of [N, C * kernel, windows] at its window. Elements in the pads are added to an
// extra pixel, which is sliced off.
Status col2im(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"dilations", "pads", "strides"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are operands of f32, f16 and bf16");
  INVAR_TRY(const std::vector<int64_t> image, node.constant_ints(1));
  INVAR_TRY(const std::vector<int64_t> block, node.constant_ints(2));
  const size_t axes = image.size();
  if (axes == 0 || axes > 3 || block.size() != axes)
    return not_covered("images and blocks of other than one to three dimensions");
  Window w{block, {}, {}, {}};
  INVAR_TRY(w.strides, node.ints_attr("strides"));
  INVAR_TRY(w.dilations, node.ints_attr("dilations"));
  INVAR_TRY(w.pads, node.ints_attr("pads"));
  if (w.strides.empty()) w.strides.assign(axes, 1);
  if (w.dilations.empty()) w.dilations.assign(axes, 1);
  if (w.pads.empty()) w.pads.assign(2 * axes, 0);
  if (w.strides.size() != axes || w.dilations.size() != axes || w.pads.size() != 2 * axes)
    return bad_input("strides, dilations or pads do not have a number for each dimension");
  int64_t pixels = 1, elements = 1, windows = 1;
  std::vector<int64_t> count;
  for (size_t d = 0; d < axes; ++d) {
    constexpr int64_t limit = 1 << 20;
    for (int64_t n : {image[d], block[d], w.strides[d], w.dilations[d]})
      if (n < 1 || n > limit) return not_covered("a size, stride or dilation of " + std::to_string(n));
    for (int64_t n : {w.pads[d], w.pads[axes + d]})
      if (n < 0 || n > limit) return not_covered("a pad of " + std::to_string(n));
    const int64_t free = image[d] + w.pads[d] + w.pads[axes + d] - w.effective_kernel(d);
    count.push_back(free < 0 ? 0 : free / w.strides[d] + 1);
    if (__builtin_mul_overflow(pixels, image[d], &pixels) ||
        __builtin_mul_overflow(elements, block[d], &elements) ||
        __builtin_mul_overflow(windows, count[d], &windows))
      return not_covered("an image of too many pixels");
  }
  const Shape x = node.shape(0);
  if (x.size() == 3 && (!x[1].constant() || !x[2].constant()))
    return not_covered("operand 0 of shape " + text_of(x) + ": its blocks and windows must be constants");
  if (x.size() != 3 || x[1].value % elements || x[2] != Dim::of(windows))
    return bad_input("operand 0 of shape " + text_of(x) + " is not blocks of " + std::to_string(elements) +
                     " in " + std::to_string(windows) + " windows");
  constexpr int64_t limit = 1 << 24;
  if (windows > limit / elements)
    return not_covered("more than " + std::to_string(limit) + " elements of windows");
  std::vector<int64_t> targets;
  for (int64_t e = 0; e < elements; ++e)
    for (int64_t i = 0; i < windows; ++i) {
      int64_t target = 0, element = e, window = i, stride = 1;
      bool inside = true;
      for (size_t d = axes; d-- > 0;) {
        const int64_t at = window % count[d] * w.strides[d] + element % block[d] * w.dilations[d] - w.pads[d];
        inside &= at >= 0 && at < image[d];
        target += at * stride, stride *= image[d];
        window /= count[d], element /= block[d];
      }
      targets.push_back(inside ? target : pixels);
    }
  ExprBuilder f(node);
  const Dim channels = Dim::of(x[1].value / elements), one = Dim::of(1), all = Dim::of(elements * windows);
  const Value updates = f.reshape(node.in(0), {x[0], channels, all});
  const Value at = f.expand(f.reshape(node.constant(targets), {one, one, all}), {x[0], channels, all});
  const Value blank = f.expand(f.f32(0), {x[0], channels, Dim::of(pixels + 1)});
  Value out = f.make<ScatterElementsOp>({blank, at, updates},
                                        {node.attr("axis", int64_t{2}), node.attr("reduction", int64_t{1})});
  Shape shape = {x[0], channels};
  for (int64_t n : image) shape.push_back(Dim::of(n));
  out = f.reshape(f.slice(out, 2, 0, pixels), shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Indices are linear in the result: that of output_shape, else of kernel, strides and pads.
Status max_unpool(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"kernel_shape", "pads", "strides"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are operands of f32, f16 and bf16");
  const Shape x = node.shape(0);
  INVAR_TRY(const int64_t elements, static_element_count(x, 0, x.size()));
  INVAR_TRY(const std::vector<int64_t> kernel, node.ints_attr("kernel_shape"));
  if (x.size() < 3 || kernel.size() != x.size() - 2) return bad_input("a kernel of other dimensions");
  if (node.shape(1) != x) return unequal_shapes(node.shape(1), x, "operands of other dimensions");
  INVAR_TRY(const Window w, parse_window(node, kernel));
  if (elements >= int64_t{1} << 30)
    return not_covered("an operand of " + std::to_string(elements) + " elements");
  Shape made = {x[0], x[1]};
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t n = (x[2 + d].value - 1) * w.strides[d] + kernel[d] - w.pads[d] - w.pads[kernel.size() + d];
    if (n < 1) return bad_input("pads that leave nothing");
    made.push_back(Dim::of(n));
  }
  ExprBuilder f(node);
  Shape shape = made;
  if (node.has(2)) {
    INVAR_TRY(const auto wanted, node.known_dim_exprs(2));
    if (wanted.size() != made.size())
      return bad_input("operand 2 has " + std::to_string(wanted.size()) + " sizes");
    for (size_t d = 0; d < made.size(); ++d) {
      const std::optional<int64_t> known = wanted[d] ? wanted[d]->constant() : std::nullopt;
      if (wanted[d] && (!known || *known < made[d].value))
        return not_covered("a result smaller than kernel and strides make it, or of an open size");
      if (known) {
        shape[d] = Dim::of(*known);
        continue;
      }
      // A computed size that is smaller becomes -1, which is an error.
      const Value size = f.to_i64(f.slice(node.in(2), 0, static_cast<int64_t>(d), 1));
      const Value least = node.constant(Ints(made[d].value)), none = node.constant(Ints(-1));
      const Value checked = f.where(f.less(size, least), none, size);
      INVAR_CHECK_OK(f.status());
      shape[d] = Dim::of(node.bind_dim(checked, 0));
    }
  }
  const std::optional<DimExpr> targets = element_count(shape);
  if (!targets) return not_covered("a result of more elements than can be counted");
  Value out = f.make<ScatterElementsOp>(
      {f.expand(f.f32(0), {Dim::of(*targets)}), f.reshape(node.in(1), {Dim::of(elements)}),
       f.reshape(node.in(0), {Dim::of(elements)})},
      {node.attr("axis", int64_t{0}), node.attr("reduction", int64_t{0})});
  out = f.reshape(out, shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Laplace expansion along the first row.
Value determinant(ExprBuilder& f, const std::vector<std::vector<Value>>& rows) {
  if (rows.size() == 1) return rows[0][0];
  Value sum;
  for (size_t c = 0; c < rows.size(); ++c) {
    std::vector<std::vector<Value>> rest;
    for (size_t r = 1; r < rows.size(); ++r) {
      rest.push_back(rows[r]);
      rest.back().erase(rest.back().begin() + static_cast<ptrdiff_t>(c));
    }
    const Value term = f.mul(rows[0][c], determinant(f, rest));
    sum = !sum ? term : c % 2 ? f.sub(sum, term) : f.add(sum, term);
  }
  return sum;
}

Status det(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  Shape shape = node.shape(0);
  const DimText no_square = "an operand " + text_of(shape) + " is no matrix of as many rows as columns";
  if (shape.size() < 2) return bad_input(no_square);
  if (const Dim& rows = shape[shape.size() - 2]; !known_equal(rows, shape.back()))
    return unequal_shapes({rows}, {shape.back()}, no_square);
  constexpr int64_t limit = 5;  // 120 products
  const Dim n = shape.back();
  if (!n.constant() || n.value < 1 || n.value > limit)
    return not_covered("matrices of " + text_of(n) + " rows; covered are 1 to " + std::to_string(limit));
  const size_t row_axis = shape.size() - 2;
  shape.resize(row_axis);
  ExprBuilder f(node);
  std::vector<std::vector<Value>> rows(static_cast<size_t>(n.value));
  for (int64_t r = 0; r < n.value; ++r) {
    const Value row = f.slice(node.in(0), row_axis, r, 1);
    for (int64_t c = 0; c < n.value; ++c)
      rows[static_cast<size_t>(r)].push_back(f.reshape(f.slice(row, row_axis + 1, c, 1), shape));
  }
  const Value out = determinant(f, rows);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// A tensor is an Optional that has an element.
Status has_element(NodeView& node) {
  INVAR_CHECK_OK(node.expect(0, 1, {}));
  return node.replace(node.constant(llvm::StringRef(node.has(0) ? "\1" : "\0", 1), DType::boolean));
}
Status get_element(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  return node.replace(node.in(0));
}

}  // namespace

void decompose_col2im_unpool(RuleRegistry& registry) {
  registry.add_rule("Col2Im", 18, col2im);
  registry.add_rule("MaxUnpool", 9, max_unpool);
  registry.add_rule("Det", 11, det);
  registry.add_rule("OptionalHasElement", 15, has_element);
  registry.add_rule("OptionalGetElement", 15, get_element);
}

}  // namespace invar::compiler
