// Lowering of MatMul, Gemm and MatMulInteger, and the type inference of matrix products.
#include <cmath>

#include "compiler/room_api.h"
#include "ops/matmul/attributes.h"

namespace invar::compiler {
namespace {

// Expands batch dimensions that are known to broadcast to one of the two, which type inference
// alone cannot tell.
Status unify_batch_dims(NodeView& node, Value& a, Value& b) {
  Shape x = shape_of(a.getType()), y = shape_of(b.getType());
  for (size_t i = 3; i <= std::min(x.size(), y.size()); ++i) {
    Dim &p = x[x.size() - i], &q = y[y.size() - i];
    if (p.constant() || q.constant() || p == q || !may_be_equal(p, q)) continue;
    const std::optional<Dim> size = node.broadcast(p, q);
    if (size && (*size == p || *size == q)) p = q = *size;
  }
  INVAR_TRY(a, expand(node, a, x));
  INVAR_TRY(b, expand(node, b, y));
  return {};
}

Status matmul(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  Value a = node.in(0), b = node.in(1);
  // A vector is a matrix of one row or column, which the result drops.
  Shape row = node.shape(0), column = node.shape(1);
  const bool drop_row = row.size() == 1, drop_column = column.size() == 1;
  if (drop_row) {
    INVAR_TRY(a, reshape(node, a, {Dim::of(1), row[0]}));
  }
  if (drop_column) {
    INVAR_TRY(b, reshape(node, b, {column[0], Dim::of(1)}));
  }
  INVAR_CHECK_OK(unify_batch_dims(node, a, b));
  INVAR_TRY(Value out, matrix_product(node, a, b));
  Shape shape = shape_of(out.getType());
  if (drop_column) shape.pop_back();
  if (drop_row) shape.erase(shape.end() - (drop_column ? 1 : 2));
  INVAR_TRY(out, reshape(node, out, shape));
  return node.replace(out);
}

// x times a float attribute, 1 if it is absent.
Result<Value> scale_by_attr(NodeView& node, Value x, const char* name) {
  INVAR_TRY(float factor, node.float_attr(name, 1.0f));
  if (factor == 1) return x;
  Value by = node.constant(factor);
  if (element_of(x).isIntOrIndex()) {
    if (factor != std::trunc(factor))
      return not_covered("attribute \"" + std::string(name) + "\" is " + std::to_string(factor) +
                         ", no whole number, for integers");
    INVAR_TRY(by, cast_to(node, by, element_of(x)));
  }
  if (element_of(x).isF64()) {
    INVAR_TRY(by, node.make<CastOp>(by, {}, tensor_of({}, element_of(x))));
  }
  return node.make<MulOp>({x, by});
}

// alpha A' B'.
Result<Value> scaled_matmul(NodeView& node) {
  INVAR_TRY(int64_t trans_a, node.int_attr("transA", 0));
  INVAR_TRY(int64_t trans_b, node.int_attr("transB", 0));
  if (element_of(node.in(0)).isIntOrIndex()) {
    Value a = node.in(0);
    if (trans_a) {
      INVAR_TRY(a, transpose(node, a, {1, 0}));
    }
    INVAR_TRY(Value out, matrix_product(node, a, node.in(1), trans_b != 0));
    return scale_by_attr(node, out, "alpha");
  }
  SmallVector<NamedAttribute> attrs = {node.attr("trans_b", int64_t{trans_b != 0})};
  if (trans_a)
    // Absent otherwise, so that older plans stay equal.
    attrs.push_back(node.attr("trans_a", int64_t{1}));
  INVAR_TRY(Value out, node.make<MatmulOp>({node.in(0), node.in(1)}, attrs));
  return scale_by_attr(node, out, "alpha");
}

// alpha A' B' + beta C. C may be absent from opset 11 on; before opset 7 it broadcasts only if the
// attribute says so.
Status gemm(NodeView& node) {
  const unsigned least = node.version() < 11 ? 3 : 2;
  const bool says = node.version() < 7;
  INVAR_CHECK_OK(says ? node.expect(3, 3, {"alpha", "beta", "broadcast", "transA", "transB"})
                      : node.expect(least, 3, {"alpha", "beta", "transA", "transB"}));
  INVAR_TRY(Value out, scaled_matmul(node));
  if (node.has(2)) {
    INVAR_TRY(const int64_t broadcasts, node.int_attr("broadcast", !says));
    const Shape product = shape_of(out.getType());
    if (!broadcasts && node.shape(2) != product)
      return unequal_shapes(product, node.shape(2),
                            "shapes " + text_of(product) + " and " + text_of(node.shape(2)) +
                                " differ, and \"broadcast\" is not 1");
    INVAR_TRY(Value bias, scale_by_attr(node, node.in(2), "beta"));
    INVAR_TRY(out, node.make<AddOp>({out, bias}));
  }
  return node.replace(out);
}

Status fused_matmul(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"alpha", "transA", "transB", "transBatchA", "transBatchB"}));
  INVAR_CHECK_OK(node.require_attr("transBatchA", int64_t{0}));
  INVAR_CHECK_OK(node.require_attr("transBatchB", int64_t{0}));
  INVAR_TRY(Value out, scaled_matmul(node));
  return node.replace(out);
}

// If only b has a zero point, that of a is 0.
Status matmul_integer(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {}));
  SmallVector<Value> in = {node.in(0), node.in(1)};
  if (node.has(2))
    in.push_back(node.in(2));
  else if (node.has(3))
    in.push_back(node.constant(llvm::StringRef("\0", 1), *dtype_of(element_of(node.in(0)))));
  if (node.has(3)) in.push_back(node.in(3));
  INVAR_TRY(Value out, node.make<MatmulIntegerOp>(in));
  return node.replace(out);
}

// A transposed weight as second factor is read as it is stored, with trans_b flipped.
template <class Op>
struct ReadTransposed : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    auto weight = op.getB().template getDefiningOp<ReproWeightOp>();
    if (!weight || !weight.getTransposed()) return failure();
    rewriter.setInsertionPointAfter(weight);
    auto stored = cast<ReproWeightOp>(rewriter.clone(*weight));
    Shape shape = shape_of(weight.getType());
    std::swap(shape[0], shape[1]);
    stored.getOut().setType(tensor_of(shape, getElementTypeOrSelf(weight.getType())));
    stored.setTransposed(false);
    rewriter.modifyOpInPlace(op, [&] {
      op.getBMutable().assign(stored.getOut());
      op.setTransB(op.getTransB() ? 0 : 1);
    });
    return success();
  }
};

// The matrices that gather takes from `table` along axis 0: those that a concat stacks, or the
// table itself. Empty: too many for a call.
SmallVector<Value> matrices_of(Value table) {
  constexpr size_t kMost = 512;  // grouped_matmul.1
  auto stack = table.getDefiningOp<ConcatOp>();
  if (!stack || stack.getAxis() != 0 || stack.getOperands().size() > kMost) return {table};
  SmallVector<Value> matrices;
  for (Value part : stack.getOperands()) {
    auto reshape = part.getDefiningOp<ReshapeOp>();
    const Shape stacked = shape_of(part.getType());
    if (!reshape || stacked[0] != Dim::of(1) ||
        shape_of(reshape.getX().getType()) != Shape(stacked.begin() + 1, stacked.end()))
      return {table};
    matrices.push_back(reshape.getX());
  }
  return matrices;
}

// A product of single rows with matrices that an index chooses reads only those that are chosen,
// once for all their rows (grouped_matmul.2).
template <class Op, class Grouped>
struct FuseGather : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  static bool transposes_a(MatmulOp op) { return op.getTransA().value_or(0) != 0; }
  static bool transposes_a(MatmulExact16Op) { return false; }
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    Value chosen = op.getB();
    bool trans_b = op.getTransB() != 0;
    if (auto transpose = chosen.template getDefiningOp<TransposeOp>()) {
      SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, transpose.getPerm().size()));
      if (swapped.size() < 2) return failure();
      std::swap(swapped.back(), swapped[swapped.size() - 2]);
      if (transpose.getPerm() != llvm::ArrayRef(swapped)) return failure();
      chosen = transpose.getX(), trans_b = !trans_b;
    }
    auto gather = chosen.template getDefiningOp<GatherOp>();
    if (!gather || gather.getAxis().value_or(0) != 0 || transposes_a(op)) return failure();
    const Shape table = shape_of(gather.getTable().getType()),
                index = shape_of(gather.getIndices().getType());
    Shape rows = shape_of(op.getA().getType());
    if (table.size() != 3 || index.empty() || rows.size() != index.size() + 2 ||
        rows[index.size()] != Dim::of(1) || element_of(op.getA()).isF64())
      return failure();
    for (size_t i = 0; i < index.size(); ++i)
      if (!known_equal(rows[i], index[i]) && (i + 1 < index.size() || rows[i] != Dim::of(1)))
        return failure();
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(index.size()));
    auto reshaped = [&](Value x, Type type) {
      return make_op(rewriter, op.getLoc(), ReshapeOp::getOperationName(), x, {}, type)->getResult(0);
    };
    SmallVector<Value> operands = {reshaped(op.getA(), tensor_of(rows, element_of(op.getA()))),
                                   gather.getIndices()};
    operands.append(matrices_of(gather.getTable()));
    Result<Operation*> made =
        make_checked(rewriter, op.getLoc(), Grouped::getOperationName(), operands,
                     {rewriter.getNamedAttr("trans_b", rewriter.getI64IntegerAttr(trans_b))}, {});
    if (!made) return failure();
    rewriter.replaceOp(op, reshaped((*made)->getResult(0), op.getType()));
    return success();
  }
};

}  // namespace

static Result<ValueType> infer_product(InferredCall& in, bool trans_a, bool trans_b) {
  Shape a = in[0].shape, b = in[1].shape;
  if (a.size() < 2 || b.size() < 2) return not_covered("covered is [..., M, K] x [..., K, N]");
  const Dim k = a[a.size() - (trans_a ? 2 : 1)], m = a[a.size() - (trans_a ? 1 : 2)];
  const Dim kb = b[b.size() - (trans_b ? 1 : 2)], n = b[b.size() - (trans_b ? 2 : 1)];
  if (!may_be_equal(k, kb)) return in.unequal_dims(k, kb, "inner dimensions");
  a.resize(a.size() - 2), b.resize(b.size() - 2);
  std::optional<Shape> shape = broadcast_if_maybe_equal(a, b);
  if (!shape)
    return not_covered("leading dimensions " + text_of(a) + " and " + text_of(b) +
                       " cannot be shown to broadcast");
  shape->push_back(m), shape->push_back(n);
  return ValueType{widened(in[0].dtype), *shape};
}

Result<ValueType> infer_matmul(InferredCall& in, const ops::MatmulAttributes& a) {
  if ((in[0].dtype == DType::f64) != (in[1].dtype == DType::f64))
    return not_covered("f64 times another type");
  return infer_product(in, a.trans_a != 0, a.trans_b != 0);
}

Result<ValueType> infer_grouped_matmul(InferredCall& in, const ops::GroupedMatmulAttributes& given) {
  const Shape &a = in[0].shape, &index = in[1].shape;
  const bool trans_b = given.trans_b != 0;
  if (!in.has(2) || a.size() < 2 || index.size() + 1 != a.size())
    return not_covered("covered are rows [..., S, K], indices [..., S] and matrices");
  const Shape& b = in[2].shape;
  if (b.size() != 2 && (b.size() != 3 || in.size() > 3))
    return not_covered("covered are matrices of rank 2, or one stack of rank 3");
  for (size_t i = 3; i < in.size(); ++i)
    if (in[i] != in[2]) return not_covered("matrices of several shapes or types");
  const Dim &k = b[b.size() - (trans_b ? 1 : 2)], &n = b[b.size() - (trans_b ? 2 : 1)];
  if (!may_be_equal(a.back(), k)) return in.unequal_dims(a.back(), k, "inner dimensions");
  for (size_t i = 0; i < index.size(); ++i)
    if (!may_be_equal(a[i], index[i]) && (i + 1 < index.size() || a[i] != Dim::of(1)))
      return in.unequal_dims(a[i], index[i], "rows and indices");
  Shape shape = index;
  shape.push_back(n);
  return ValueType{DType::f32, shape};
}

Result<ValueType> infer_fixed_matmul(InferredCall& in) {
  const Shape &a = in[0].shape, &b = in[1].shape;
  if (a.size() != 3 || b.size() != 3) return bad_input("a and b are not [units, T, M] and [units, T, N]");
  if (a[0] != b[0] || a[1] != b[1]) return bad_input("a and b have other units or another length of them");
  if (!a[2].constant() || !b[2].constant()) return bad_input("the result has sizes that are not known");
  return ValueType{DType::i64, {Dim::of(a[2].value * b[2].value + 1)}};
}

Result<ValueType> infer_matmul_integer(InferredCall& in) {
  INVAR_TRY(ValueType made, infer_product(in, false, false));
  for (size_t i = 2; i < in.size(); ++i) {  // the zero point of a, then of b
    const Shape& shape = in[i].shape;
    if (in[i].dtype != in[i > 2].dtype) return bad_input("a zero point of another type");
    if (shape.size() > 1) return not_covered("zero points of rank " + std::to_string(shape.size()));
    const Dim& all = made.shape[made.shape.size() - (i > 2 ? 1 : 2)];
    if (!shape.empty() && shape[0] != Dim::of(1) && !known_equal(shape[0], all))
      return in.unequal_dims(shape[0], all, "zero points and what they are for");
  }
  made.dtype = DType::i32;
  return made;
}

Result<ValueType> infer_matmul_nbits(InferredCall& in, const ops::MatmulNbitsAttributes& given) {
  Shape a = in[0].shape;
  const Shape& b = in[1].shape;
  const bool trans_b = given.trans_b != 0;
  if (a.empty() || b.size() < 2 || (b.size() > 2 && !trans_b))
    return not_covered("covered is [..., K] x integers of N columns");
  if (given.bits == 8 && b.size() == 2 && !known_equal(a.back(), b[trans_b ? 1 : 0]))
    return in.unequal_dims(a.back(), b[trans_b ? 1 : 0], "inner dimensions");
  a.back() = b[trans_b ? 0 : 1];
  return ValueType{DType::f32, a};
}

void import_matmul(RuleRegistry& registry) {
  registry.add_rule("MatMul", 1, matmul, Widening::wrapping);
  registry.add_rule("Gemm", 1, gemm, Widening::wrapping);
  registry.add_rule("MatMulInteger", 10, matmul_integer);
  registry.add_rule("com.microsoft.FusedMatMul", 1, fused_matmul);
  registry.add_pattern<ReadTransposed<MatmulOp>>();
  registry.add_pattern<ReadTransposed<MatmulExact16Op>>();
  registry.add_pattern<FuseGather<MatmulOp, GroupedMatmulOp>>();
  registry.add_pattern<FuseGather<MatmulExact16Op, GroupedMatmulExact16Op>>();
}

}  // namespace invar::compiler
