// NonZero and Unique, whose result shapes depend on values: folded for constants (onnx.17), else
// computed at run time (onnx.22).
#include <algorithm>
#include <numeric>

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/builders/dynamic_unique.h"
#include "compiler/lowering/builders/nonzero_indices.h"

namespace invar::compiler {
namespace {

// The elements of a constant as keys of the same order. All NaNs are equal and last; both zeros are
// equal.
Result<std::vector<int64_t>> comparison_keys(const NodeView& node, unsigned operand) {
  const std::optional<std::string> bytes = node.constant_bytes(operand);
  if (!bytes) return node.not_constant(operand);
  const std::optional<DType> type = dtype_of(element_of(node.in(operand)));
  if (!type) return not_covered("operand " + std::to_string(operand) + " of its element type");
  const size_t width = size_of(*type);
  const bool is_float =
      *type == DType::f32 || *type == DType::f64 || *type == DType::f16 || *type == DType::bf16;
  const bool is_signed =
      *type == DType::i64 || *type == DType::i32 || *type == DType::i16 || *type == DType::i8;
  // The bits of infinity.
  const uint64_t infinity = *type == DType::f32   ? 0x7f800000
                            : *type == DType::f64 ? 0x7ff0000000000000
                            : *type == DType::f16 ? 0x7c00
                                                  : 0x7f80;
  std::vector<int64_t> keys;
  for (size_t at = 0; at < bytes->size(); at += width) {
    uint64_t word = 0;
    for (size_t i = 0; i < width; ++i)
      word |= uint64_t{static_cast<unsigned char>((*bytes)[at + i])} << (8 * i);
    const uint64_t sign = uint64_t{1} << (8 * width - 1), magnitude = word & ~sign;
    if (is_float)
      keys.push_back(magnitude > infinity ? INT64_MAX
                     : word & sign        ? -static_cast<int64_t>(magnitude)
                                          : static_cast<int64_t>(magnitude));
    else if (is_signed && word & sign)
      keys.push_back(static_cast<int64_t>(word | ~(sign | (sign - 1))));
    else
      keys.push_back(static_cast<int64_t>(word));
  }
  return keys;
}

std::vector<int64_t> static_dims(const NodeView& node, unsigned operand) {
  std::vector<int64_t> sizes;
  for (const Dim& e : node.shape(operand)) sizes.push_back(e.value);
  return sizes;
}

// NonZero of elements that are known at run time only.
Status non_zero_dynamic(NodeView& node) {
  const Shape shape = node.shape(0);
  if (shape.empty()) return not_covered("a scalar");
  INVAR_TRY(Value flags, flatten_to_1d(node, node.in(0)));
  if (const Type i1 = node.builder().getI1Type(); element_of(flags) != i1) {
    INVAR_TRY(flags, node.make<CastOp>(flags, {}, tensor_of(shape_of(flags.getType()), i1)));
  }
  INVAR_TRY(const NonzeroIndices selected, nonzero_indices(node, flags));
  const Shape row = {Dim::of(1), selected.count};
  Value rest = selected.index;
  SmallVector<Value> rows(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    Value at = rest;
    if (d > 0) {
      const Value size = node.size_tensor(*dim_expr_of(shape[d]), {});
      INVAR_TRY(at, node.make<ModOp>({rest, size}));
      INVAR_TRY(rest, node.make<DivOp>({rest, size}));
    }
    INVAR_TRY(rows[d], reshape(node, at, row));
  }
  INVAR_TRY(Value out, concat(node, rows, 0));
  return node.replace(out);
}

Status non_zero(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  if (!node.constant_bytes(0)) return non_zero_dynamic(node);
  INVAR_TRY(const std::vector<int64_t> keys, comparison_keys(node, 0));
  const std::vector<int64_t> sizes = static_dims(node, 0);
  if (sizes.empty()) return not_covered("a scalar");
  std::vector<std::vector<int64_t>> indices(sizes.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) indices[d].push_back(rest % sizes[d]);
  }
  std::string bytes;
  for (const auto& row : indices) bytes += bytes_of(row, 8);
  return node.replace(node.constant(
      bytes, DType::i64, {static_cast<int64_t>(sizes.size()), static_cast<int64_t>(indices[0].size())}));
}

// The distinct slices along the axis, or elements of the flat operand; the first of equal ones.
Status unique(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis", "sorted"}, 4));
  INVAR_TRY(const int64_t sorted, node.int_attr("sorted", 1));
  if (!node.constant_bytes(0)) {
    std::optional<int64_t> along;
    if (node.attribute("axis")) {
      INVAR_TRY(along, node.int_attr("axis", 0));
      INVAR_TRY(along, NodeView::normalize_axis(*along, node.shape(0).size()));
    }
    return unique_dynamic(node, along, sorted != 0);
  }
  INVAR_TRY(const std::vector<int64_t> keys, comparison_keys(node, 0));
  std::vector<int64_t> sizes = static_dims(node, 0);
  int64_t axis = 0;
  if (node.attribute("axis")) {
    INVAR_TRY(axis, node.int_attr("axis", 0));
    INVAR_TRY(axis, NodeView::normalize_axis(axis, sizes.size()));
  } else {
    sizes = {static_cast<int64_t>(keys.size())};
  }
  const int64_t n = sizes[static_cast<size_t>(axis)];
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (static_cast<int64_t>(d) < axis) outer *= sizes[d];
    if (static_cast<int64_t>(d) > axis) inner *= sizes[d];
  }
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t p = keys[static_cast<size_t>((o * n + a) * inner + i)],
                      q = keys[static_cast<size_t>((o * n + b) * inner + i)];
        if (p != q) return p < q ? -1 : 1;
      }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(n)), first, count, inverse(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<std::vector<int64_t>> groups;
  for (int64_t i : order) {
    if (groups.empty() || compare(groups.back()[0], i) != 0) groups.emplace_back();
    groups.back().push_back(i);
  }
  if (!sorted) std::sort(groups.begin(), groups.end());  // by first occurrence
  for (const auto& group : groups) {
    for (int64_t i : group) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(first.size());
    first.push_back(group[0]), count.push_back(static_cast<int64_t>(group.size()));
  }
  const std::optional<std::string> bytes = node.constant_bytes(0);
  const size_t width = keys.empty() ? 0 : bytes->size() / keys.size();
  std::string kept;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : first)
      kept +=
          bytes->substr(static_cast<size_t>((o * n + i) * inner) * width, static_cast<size_t>(inner) * width);
  sizes[static_cast<size_t>(axis)] = static_cast<int64_t>(first.size());
  node.replace(1, node.constant(first));
  node.replace(2, node.constant(inverse));
  node.replace(3, node.constant(count));
  return node.replace(node.constant(kept, *dtype_of(element_of(node.in(0))), sizes));
}

}  // namespace

void decompose_nonzero_unique(RuleRegistry& registry) {
  registry.add_rule("NonZero", 9, non_zero);
  registry.add_rule("Unique", 11, unique, Widening::ordered);
}

}  // namespace invar::compiler
