// Linear models and support vector machines of ai.onnx.ml, as products and functions of elements.
#include <numeric>

#include "compiler/lowering/builders/ml_scores.h"

namespace invar::compiler {
namespace {

// Rows in f32, in which linear models and support vectors are computed.
Result<Value> f32_rows(NodeView& node) {
  INVAR_TRY(const Value x, feature_rows(node));
  return cast_to(node, x, node.builder().getF32Type());
}

Value f32_list(NodeView& node, const std::vector<float>& list, llvm::ArrayRef<int64_t> shape) {
  return float_list(node, std::vector<double>(list.begin(), list.end()), node.builder().getF32Type(), shape);
}

// x times the transpose of the matrix of `rows` rows, plus a number for each row unless there are
// none.
Result<Value> affine(NodeView& node, Value x, const std::vector<float>& matrix, int64_t rows,
                     const std::vector<float>& add, const char* what) {
  const Dim width = shape_of(x.getType())[1];
  const auto size = static_cast<int64_t>(matrix.size());
  if (rows < 1 || size % rows) return bad_input(std::string("attribute \"") + what + "\" has no whole rows");
  if (width.constant() && width.value != size / rows)
    return bad_input(std::string("attribute \"") + what + "\" is for " + std::to_string(size / rows) +
                     " features, and the rows have " + std::to_string(width.value));
  INVAR_TRY(Value y, matrix_product(node, x, f32_list(node, matrix, {rows, size / rows}), true));
  if (add.empty()) return y;
  if (add.size() != 1 && static_cast<int64_t>(add.size()) != rows)
    return bad_input("its constants are not one, or one for each of " + std::to_string(rows));
  return node.make<AddOp>({y, f32_list(node, add, {static_cast<int64_t>(add.size())})});
}

Status linear_regressor(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"coefficients", "intercepts", "post_transform", "targets"}));
  INVAR_TRY(const std::vector<float> weights, floats_attr(node, "coefficients"));
  INVAR_TRY(const std::vector<float> add, floats_attr(node, "intercepts"));
  INVAR_TRY(const int64_t targets, node.int_attr("targets", 1));
  INVAR_TRY(Link link, link_attr(node));
  if (targets == 1 && link != Link::probit) link = Link::none;
  INVAR_TRY(const Value x, f32_rows(node));
  INVAR_TRY(Value y, affine(node, x, weights, targets, add, "coefficients"));
  INVAR_TRY(y, linked(node, y, link));
  return node.replace(y);
}

// The scores of two classes from that of the second: 1 - s and s, where only LOGISTIC is a link.
Result<Value> pair_of(NodeView& node, Value score, Link link) {
  ExprBuilder f(node);
  const bool logistic = link == Link::logistic;
  const Value low = logistic ? f.make<NegOp>({score}) : f.sub(f.f32(1), score);
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Value both, concat(node, {low, score}, 1));
  return logistic ? linked(node, both, link) : both;
}

Status linear_classifier(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1,
                             {"classlabels_ints", "classlabels_strings", "coefficients", "intercepts",
                              "multi_class", "post_transform"},
                             2));
  INVAR_TRY(std::vector<int64_t> labels, class_labels(node, "classlabels_ints"));
  INVAR_TRY(const std::vector<float> weights, floats_attr(node, "coefficients"));
  INVAR_TRY(const std::vector<float> add, floats_attr(node, "intercepts"));
  INVAR_TRY(const Link link, link_attr(node));
  const auto classes = static_cast<int64_t>(add.empty() ? labels.size() : add.size());
  if (classes > 1 && static_cast<int64_t>(labels.size()) < classes)
    return bad_input("it has fewer labels than intercepts");
  INVAR_TRY(const Value x, f32_rows(node));
  INVAR_TRY(Value scores, affine(node, x, weights, classes, add, "coefficients"));
  Value best;
  if (classes == 1) {
    const bool named = labels.size() == 2;
    if (!named) labels = {0, 1};
    INVAR_TRY(best, class_above(node, scores, 0));
    if (link == Link::probit) {
      INVAR_TRY(scores, linked(node, scores, link));
    } else if (named) {
      INVAR_TRY(scores, pair_of(node, scores, link));
    }
  } else {
    INVAR_TRY(best, best_class(node, scores));
    INVAR_TRY(scores, linked(node, scores, link));
  }
  INVAR_TRY(const Value label, labels_at(node, best, labels));
  node.replace(1, scores);
  return node.replace(label);
}

// ---- support vector machines

// The kernel of each row and support vector, [N, V].
Result<Value> kernels(NodeView& node, Value x, const std::vector<float>& vectors, int64_t count) {
  INVAR_TRY(const int64_t kind, enum_attr(node, "kernel_type", "LINEAR POLY RBF SIGMOID", "LINEAR"));
  INVAR_TRY(std::vector<float> params, floats_attr(node, "kernel_params"));
  if (params.empty()) params = {0, 0, 0};
  if (params.size() != 3) return bad_input("attribute \"kernel_params\" is not gamma, coef0 and degree");
  ExprBuilder f(node);
  if (kind == 2) {
    const Shape rows = shape_of(x.getType());
    const auto size = static_cast<int64_t>(vectors.size());
    if (size % count || (rows[1].constant() && rows[1].value != size / count))
      return bad_input("attribute \"support_vectors\" has no vectors of the rows' length");
    const Value apart =
        f.sub(f.reshape(x, {rows[0], Dim::of(1), rows[1]}), f32_list(node, vectors, {count, size / count}));
    const Value distance = f.make<ReduceSumSquareOp>(
        {apart}, {node.attr("axes", Ints(int64_t{2})), node.attr("keepdims", int64_t{0})});
    const Value out = f.make<ExpOp>({f.mul(f.f32(-params[0]), distance)});
    INVAR_CHECK_OK(f.status());
    return out;
  }
  INVAR_TRY(Value dot, affine(node, x, vectors, count, {}, "support_vectors"));
  if (kind == 0) return dot;
  const Value shifted = f.add(f.mul(f.f32(params[0]), dot), f.f32(params[1]));
  const Value out = kind == 3        ? f.make<TanhOp>({shifted})
                    : params[2] == 2 ? f.mul(shifted, shifted)
                    : params[2] == 3 ? f.mul(f.mul(shifted, shifted), shifted)
                                     : f.make<PowOp>({shifted, f.f32(params[2])});
  INVAR_CHECK_OK(f.status());
  return out;
}

Status svm_regressor(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1,
                             {"coefficients", "kernel_params", "kernel_type", "n_supports", "one_class",
                              "post_transform", "rho", "support_vectors"}));
  INVAR_TRY(const std::vector<float> weights, floats_attr(node, "coefficients"));
  INVAR_TRY(const std::vector<float> vectors, floats_attr(node, "support_vectors"));
  INVAR_TRY(const std::vector<float> rho, floats_attr(node, "rho"));
  INVAR_TRY(const int64_t count, node.int_attr("n_supports", 0));
  INVAR_TRY(const int64_t one_class, node.int_attr("one_class", 0));
  if (rho.empty()) return bad_input("attribute \"rho\" is missing");
  INVAR_TRY(Value x, f32_rows(node));
  if (count > 0) {
    INVAR_TRY(x, kernels(node, x, vectors, count));
  }
  INVAR_TRY(Value y, affine(node, x, weights, 1, {rho[0]}, "coefficients"));
  if (one_class) {
    ExprBuilder f(node);
    y = f.where(f.less(f.f32(0), y), f.f32(1), f.f32(-1));
    INVAR_CHECK_OK(f.status());
  }
  return node.replace(y);
}

// The decision of each pair of classes, i before j: [N, pairs].
Result<Value> pair_decisions(NodeView& node, Value kernel, const std::vector<int64_t>& per_class,
                             const std::vector<float>& weights, const std::vector<float>& rho) {
  const size_t classes = per_class.size(), pairs = classes * (classes - 1) / 2;
  const auto count = static_cast<size_t>(std::accumulate(per_class.begin(), per_class.end(), int64_t{0}));
  if (weights.size() != (classes - 1) * count || rho.size() < pairs)
    return bad_input("its coefficients and rho are not for " + std::to_string(pairs) +
                     " pairs of classes and " + std::to_string(count) + " vectors");
  std::vector<size_t> first(classes + 1, 0);
  for (size_t c = 0; c < classes; ++c) first[c + 1] = first[c] + static_cast<size_t>(per_class[c]);
  std::vector<float> matrix(pairs * count, 0.0f);
  size_t row = 0;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++row) {
      for (size_t v = first[i]; v < first[i + 1]; ++v) matrix[row * count + v] = weights[(j - 1) * count + v];
      for (size_t v = first[j]; v < first[j + 1]; ++v) matrix[row * count + v] = weights[i * count + v];
    }
  const std::vector<float> add(rho.begin(), rho.begin() + static_cast<std::ptrdiff_t>(pairs));
  return affine(node, kernel, matrix, static_cast<int64_t>(pairs), add, "coefficients");
}

// The class with most votes, of equals the first: [N].
Result<Value> most_votes(NodeView& node, Value decisions, size_t classes) {
  ExprBuilder f(node);
  const Value wins = f.to_f32(f.less(f.f32(0), decisions));
  std::vector<float> for_winner(decisions ? classes * (classes * (classes - 1) / 2) : 0, 0.0f),
      base(classes, 0.0f);
  const size_t pairs = classes * (classes - 1) / 2;
  size_t p = 0;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++p)
      for_winner[i * pairs + p] = 1, for_winner[j * pairs + p] = -1, base[j] += 1;
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Value votes, affine(node, wins, for_winner, static_cast<int64_t>(classes), base, "votes"));
  return best_class(node, votes);
}

// Probabilities of classes from those of pairs r[i, j], by the iteration of LIBSVM as runtimes have
// it: at most 100 rounds, and a row that has converged stays (onnx.54).
class PairCoupling {
 public:
  PairCoupling(NodeView& node, size_t classes) : f_(node), classes_(classes) {}
  Result<Value> run(Value pairs) {
    const size_t k = classes_;
    const Dim rows = shape_of(pairs.getType())[0];
    std::vector<Value> r(k * k), q(k * k);
    size_t p = 0;
    for (size_t i = 0; i < k; ++i)
      for (size_t j = i + 1; j < k; ++j, ++p) {
        r[i * k + j] = f_.slice(pairs, 1, static_cast<int64_t>(p), 1);
        r[j * k + i] = f_.sub(f_.f32(1), r[i * k + j]);
      }
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < k; ++j) {
        if (i == j) continue;
        const Value square = f_.mul(r[j * k + i], r[j * k + i]);
        q[i * k + i] = q[i * k + i] ? f_.add(q[i * k + i], square) : square;
        q[i * k + j] = j < i ? q[j * k + i] : f_.make<NegOp>({f_.mul(r[j * k + i], r[i * k + j])});
      }
    }
    const Value start = f_.expand(f_.f32(1.0f / static_cast<float>(k)), {rows, Dim::of(1)});
    SmallVector<Value> carried(k, start), constant(q.begin(), q.end());
    carried.push_back(f_.expand(f_.f32(0), {rows, Dim::of(1)}));  // 1: converged
    INVAR_CHECK_OK(f_.status());
    INVAR_TRY(const SmallVector<Value> ends,
              f_.node().make_loop(DimExpr(100), carried, constant,
                                  [k](NodeView& step, Value, ValueRange now, ValueRange fixed) {
                                    return round(step, k, now, fixed);
                                  }));
    return concat(f_.node(), ValueRange(ends).take_front(k), 1);
  }

 private:
  static Result<SmallVector<Value>> round(NodeView& step, size_t k, ValueRange now, ValueRange q) {
    ExprBuilder f(step);
    std::vector<Value> p(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(k)), qp(k);
    Value pqp, error;
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < k; ++j) {
        const Value term = f.mul(q[i * k + j], p[j]);
        qp[i] = j ? f.add(qp[i], term) : term;
      }
      const Value term = f.mul(p[i], qp[i]);
      pqp = i ? f.add(pqp, term) : term;
    }
    for (size_t i = 0; i < k; ++i) {
      const Value off = f.make<AbsOp>({f.sub(qp[i], pqp)});
      error = i ? f.max(error, off) : off;
    }
    const Value small = f.to_f32(f.less(error, f.f32(0.005f / static_cast<float>(k))));
    const Value stays = f.max(now[k], small), done = f.less(f.f32(0), stays);
    const Value one = f.f32(1), two = f.f32(2);
    for (size_t i = 0; i < k; ++i) {
      const Value diagonal = q[i * k + i];
      const Value diff = f.div(f.sub(pqp, qp[i]), diagonal), grown = f.add(one, diff);
      p[i] = f.add(p[i], diff);
      const Value gain = f.mul(diff, f.add(f.mul(diff, diagonal), f.mul(two, qp[i])));
      pqp = f.div(f.div(f.add(pqp, gain), grown), grown);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = f.div(f.add(qp[j], f.mul(diff, q[i * k + j])), grown);
        p[j] = f.div(p[j], grown);
      }
    }
    SmallVector<Value> next;
    for (size_t i = 0; i < k; ++i) next.push_back(f.where(done, now[i], p[i]));
    next.push_back(stays);
    INVAR_CHECK_OK(f.status());
    return next;
  }

  ExprBuilder f_;
  size_t classes_;
};

Result<Value> probabilities(NodeView& node, Value decisions, size_t classes, const std::vector<float>& a,
                            const std::vector<float>& b) {
  const size_t pairs = classes * (classes - 1) / 2;
  if (a.size() != pairs || b.size() != pairs)
    return bad_input("attributes \"prob_a\" and \"prob_b\" are not a number for each pair of classes");
  if (classes > 32) return not_covered("probabilities of more than 32 classes");
  const auto count = static_cast<int64_t>(pairs);
  ExprBuilder f(node);
  const Value x = f.add(f.mul(decisions, f32_list(node, a, {count})), f32_list(node, b, {count}));
  const Value p = f.sub(f.f32(1), f.make<SigmoidOp>({x}));
  const Value clamped = f.min(f.max(p, f.f32(1e-7f)), f.f32(1 - 1e-7f));
  INVAR_CHECK_OK(f.status());
  return PairCoupling(node, classes).run(clamped);
}

// A classifier without support vectors: a linear one, whose scores are those of the classes.
Status linear_svm(NodeView& node, const std::vector<int64_t>& labels, const std::vector<float>& weights,
                  const std::vector<float>& rho, Link link) {
  INVAR_TRY(const Value x, f32_rows(node));
  const auto classes = static_cast<int64_t>(labels.size());
  INVAR_TRY(Value scores, affine(node, x, weights, classes, {rho[0]}, "coefficients"));
  INVAR_TRY(Value best, best_class(node, scores));
  if (classes == 2) {
    ExprBuilder f(node);
    const bool positive = std::all_of(weights.begin(), weights.end(), [](float w) { return w >= 0; });
    const Value most = f.make<ReduceMaxOp>(
        {scores}, {node.attr("axes", Ints(int64_t{1})), node.attr("keepdims", int64_t{0})});
    const Value second = positive ? f.make<GreaterEqualOp>({most, f.f32(0.5f)}) : f.less(f.f32(0), most);
    best = f.where(second, node.constant(std::vector<int64_t>{1}), best);
    INVAR_CHECK_OK(f.status());
  }
  INVAR_TRY(const Value label, labels_at(node, best, labels));
  INVAR_TRY(scores, linked(node, scores, link));
  node.replace(1, scores);
  return node.replace(label);
}

Status svm_classifier(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(1, 1,
                  {"classlabels_ints", "classlabels_strings", "coefficients", "kernel_params", "kernel_type",
                   "post_transform", "prob_a", "prob_b", "rho", "support_vectors", "vectors_per_class"},
                  2));
  INVAR_TRY(const std::vector<int64_t> labels, class_labels(node, "classlabels_ints"));
  INVAR_TRY(const std::vector<int64_t> per_class, node.ints_attr("vectors_per_class"));
  INVAR_TRY(const std::vector<float> weights, floats_attr(node, "coefficients"));
  INVAR_TRY(const std::vector<float> vectors, floats_attr(node, "support_vectors"));
  INVAR_TRY(const std::vector<float> rho, floats_attr(node, "rho"));
  INVAR_TRY(const std::vector<float> prob_a, floats_attr(node, "prob_a"));
  INVAR_TRY(const std::vector<float> prob_b, floats_attr(node, "prob_b"));
  INVAR_TRY(const Link link, link_attr(node));
  if (rho.empty()) return bad_input("attribute \"rho\" is missing");
  const int64_t count = std::accumulate(per_class.begin(), per_class.end(), int64_t{0});
  if (count == 0) return linear_svm(node, labels, weights, rho, link);
  const size_t classes = labels.size();
  if (per_class.size() != classes || classes < 2)
    return bad_input("attribute \"vectors_per_class\" is not a number for each of two or more classes");
  INVAR_TRY(const Value x, f32_rows(node));
  INVAR_TRY(const Value kernel, kernels(node, x, vectors, count));
  INVAR_TRY(const Value decisions, pair_decisions(node, kernel, per_class, weights, rho));
  INVAR_TRY(const Value best, most_votes(node, decisions, classes));
  Value scores = decisions;
  if (!prob_a.empty()) {
    INVAR_TRY(scores, probabilities(node, decisions, classes, prob_a, prob_b));
    INVAR_TRY(scores, linked(node, scores, link));
  } else if (classes > 2) {
    INVAR_TRY(scores, linked(node, scores, link));
  } else {
    if (link == Link::probit) return not_covered("post_transform PROBIT of one score for two classes");
    if (link != Link::none) {
      INVAR_TRY(scores, pair_of(node, scores, link));
    } else {
      INVAR_TRY(const Value low, node.make<NegOp>({scores}));
      INVAR_TRY(scores, concat(node, {low, scores}, 1));
    }
  }
  INVAR_TRY(const Value label, labels_at(node, best, labels));
  node.replace(1, scores);
  return node.replace(label);
}

}  // namespace

void decompose_ml_linear(RuleRegistry& registry) {
  registry.add_rule("ai.onnx.ml.LinearClassifier", 1, linear_classifier);
  registry.add_rule("ai.onnx.ml.LinearRegressor", 1, linear_regressor);
  registry.add_rule("ai.onnx.ml.SVMClassifier", 1, svm_classifier);
  registry.add_rule("ai.onnx.ml.SVMRegressor", 1, svm_regressor);
}

}  // namespace invar::compiler
