// Operators that place elements where constants or operands say, and small determinants.
#include "compiler/lowering/builders/builder_dsl.h"
#include "compiler/lowering/builders/sliding_window.h"

namespace invar::compiler {
namespace {

// Every column of [N, C * kernel, windows] is added where its window lies; what lies in the pads goes to a place that is cut off.
Status col2im(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"dilations", "pads", "strides"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are operands of f32, f16 and bf16");
  INVAR_TRY(const std::vector<int64_t> image, node.constants(1));
  INVAR_TRY(const std::vector<int64_t> block, node.constants(2));
  const size_t axes = image.size();
  if (axes == 0 || axes > 3 || block.size() != axes)
    return not_covered("images and blocks of other than one to three dimensions");
  Window w{block, {}, {}, {}};
  INVAR_TRY(w.strides, node.ints("strides"));
  INVAR_TRY(w.dilations, node.ints("dilations"));
  INVAR_TRY(w.pads, node.ints("pads"));
  if (w.strides.empty()) w.strides.assign(axes, 1);
  if (w.dilations.empty()) w.dilations.assign(axes, 1);
  if (w.pads.empty()) w.pads.assign(2 * axes, 0);
  if (w.strides.size() != axes || w.dilations.size() != axes || w.pads.size() != 2 * axes)
    return bad_input("strides, dilations or pads do not have a number for each dimension");
  int64_t pixels = 1, elements = 1, windows = 1;
  std::vector<int64_t> count;
  for (size_t d = 0; d < axes; ++d) {
    constexpr int64_t most = 1 << 20;
    for (int64_t n : {image[d], block[d], w.strides[d], w.dilations[d]})
      if (n < 1 || n > most) return not_covered("a size, stride or dilation of " + std::to_string(n));
    for (int64_t n : {w.pads[d], w.pads[axes + d]})
      if (n < 0 || n > most) return not_covered("a pad of " + std::to_string(n));
    const int64_t room = image[d] + w.pads[d] + w.pads[axes + d] - w.reach(d);
    count.push_back(room < 0 ? 0 : room / w.strides[d] + 1);
    if (__builtin_mul_overflow(pixels, image[d], &pixels) ||
        __builtin_mul_overflow(elements, block[d], &elements) ||
        __builtin_mul_overflow(windows, count[d], &windows))
      return not_covered("an image of too many pixels");
  }
  const Shape x = node.shape(0);
  if (x.size() == 3 && (!x[1].constant() || !x[2].constant()))
    return not_covered("operand 0 of shape " + text_of(x) + ": its blocks and windows must be constants");
  if (x.size() != 3 || x[1].value % elements || x[2] != Extent::of(windows))
    return bad_input("operand 0 of shape " + text_of(x) + " is not blocks of " + std::to_string(elements) +
                     " in " + std::to_string(windows) + " windows");
  constexpr int64_t most = 1 << 24;
  if (windows > most / elements)
    return not_covered("more than " + std::to_string(most) + " elements of windows");
  std::vector<int64_t> places;
  for (int64_t e = 0; e < elements; ++e)
    for (int64_t i = 0; i < windows; ++i) {
      int64_t place = 0, element = e, window = i, stride = 1;
      bool inside = true;
      for (size_t d = axes; d-- > 0;) {
        const int64_t at = window % count[d] * w.strides[d] + element % block[d] * w.dilations[d] - w.pads[d];
        inside &= at >= 0 && at < image[d];
        place += at * stride, stride *= image[d];
        window /= count[d], element /= block[d];
      }
      places.push_back(inside ? place : pixels);
    }
  Formula f(node);
  const Extent channels = Extent::of(x[1].value / elements), one = Extent::of(1),
               all = Extent::of(elements * windows);
  const Value updates = f.shape(node.in(0), {x[0], channels, all});
  const Value at = f.spread(f.shape(node.constant(places), {one, one, all}), {x[0], channels, all});
  const Value blank = f.spread(f.number(0), {x[0], channels, Extent::of(pixels + 1)});
  Value out = f.make<ScatterElementsOp>({blank, at, updates},
                                        {node.attr("axis", int64_t{2}), node.attr("reduction", int64_t{1})});
  Shape shape = {x[0], channels};
  for (int64_t n : image) shape.push_back(Extent::of(n));
  out = f.shape(f.cut(out, 2, 0, pixels), shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Indices are places in the whole result as kernel, strides and pads make it; a larger shape adds zeros at the ends.
Status max_unpool(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"kernel_shape", "pads", "strides"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are operands of f32, f16 and bf16");
  const Shape x = node.shape(0);
  INVAR_TRY(const int64_t elements, product_of(x, 0, x.size()));
  INVAR_TRY(const std::vector<int64_t> kernel, node.ints("kernel_shape"));
  if (x.size() < 3 || kernel.size() != x.size() - 2) return bad_input("a kernel of other dimensions");
  if (node.shape(1) != x) return unequal(node.shape(1), x, "operands of other dimensions");
  INVAR_TRY(const Window w, window_of(node, kernel));
  if (elements >= int64_t{1} << 30)
    return not_covered("an operand of " + std::to_string(elements) + " elements");
  Shape made = {x[0], x[1]};
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t n = (x[2 + d].value - 1) * w.strides[d] + kernel[d] - w.pads[d] - w.pads[kernel.size() + d];
    if (n < 1) return bad_input("pads that leave nothing");
    made.push_back(Extent::of(n));
  }
  INVAR_TRY(const int64_t places, product_of(made, 0, made.size()));
  Formula f(node);
  Value out = f.make<ScatterElementsOp>(
      {f.spread(f.number(0), {Extent::of(places)}), f.shape(node.in(1), {Extent::of(elements)}),
       f.shape(node.in(0), {Extent::of(elements)})},
      {node.attr("axis", int64_t{0}), node.attr("reduction", int64_t{0})});
  out = f.shape(out, made);
  if (node.has(2)) {
    INVAR_TRY(const auto wanted, node.known_sizes(2));
    if (wanted.size() != made.size())
      return bad_input("operand 2 has " + std::to_string(wanted.size()) + " sizes");
    Shape shape;
    for (size_t d = 0; d < made.size(); ++d) {
      const std::optional<int64_t> known = wanted[d] ? wanted[d]->constant() : std::nullopt;
      if (wanted[d] && (!known || *known < made[d].value))
        return not_covered("a result smaller than kernel and strides make it, or of an open size");
      if (known) {
        shape.push_back(Extent::of(*known));
        continue;
      }
      // One that is computed and smaller is none.
      const Value size = f.whole(f.cut(node.in(2), 0, static_cast<int64_t>(d), 1));
      const Value least = node.constant(Sizes(made[d].value)), none = node.constant(Sizes(-1));
      const Value checked = f.where(f.less(size, least), none, size);
      INVAR_CHECK_OK(f.status());
      shape.push_back(Extent::of(node.bind(checked, 0)));
    }
    const SmallVector<int64_t> begins(made.size(), 0);
    if (shape != made)
      out = f.make<PadOp>(out, node.attr("begins", Sizes(begins)), tensor_of(shape, element_of(node.in(0))));
  }
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Along the first row: element times the determinant of what neither its row nor its column has, with alternating signs.
Value determinant(Formula& f, const std::vector<std::vector<Value>>& rows) {
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

Status det(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  Shape shape = node.shape(0);
  const std::string no_square = "an operand " + text_of(shape) + " is no matrix of as many rows as columns";
  if (shape.size() < 2) return bad_input(no_square);
  if (const Extent& rows = shape[shape.size() - 2]; !same(rows, shape.back()))
    return unequal({rows}, {shape.back()}, no_square);
  constexpr int64_t most = 5;  // 120 products
  const Extent n = shape.back();
  if (!n.constant() || n.value < 1 || n.value > most)
    return not_covered("matrices of " + text_of(n) + " rows; covered are 1 to " + std::to_string(most));
  const size_t row_axis = shape.size() - 2;
  shape.resize(row_axis);
  Formula f(node);
  std::vector<std::vector<Value>> rows(static_cast<size_t>(n.value));
  for (int64_t r = 0; r < n.value; ++r) {
    const Value row = f.cut(node.in(0), row_axis, r, 1);
    for (int64_t c = 0; c < n.value; ++c)
      rows[static_cast<size_t>(r)].push_back(f.shape(f.cut(row, row_axis + 1, c, 1), shape));
  }
  const Value out = determinant(f, rows);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Tensors are always there.
Status has_element(Node& node) {
  INVAR_CHECK_OK(node.expect(0, 1, {}));
  return node.replace(node.constant(llvm::StringRef(node.has(0) ? "\1" : "\0", 1), DType::boolean));
}
Status get_element(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  return node.replace(node.in(0));
}

}  // namespace

void decompose_col2im_unpool(Rooms& rooms) {
  rooms.on("Col2Im", 18, col2im);
  rooms.on("MaxUnpool", 9, max_unpool);
  rooms.on("Det", 11, det);
  rooms.on("OptionalHasElement", 15, has_element);
  rooms.on("OptionalGetElement", 15, get_element);
}

}  // namespace invar::compiler
