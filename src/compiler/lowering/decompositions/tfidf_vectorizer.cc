// TfIdfVectorizer: counts n-grams by comparing the windows of the operand with all n-grams of the
// pool at once.
#include "compiler/lowering/builders/expr_builder.h"

namespace invar::compiler {
namespace {

// The n-grams of one length.
struct NgramGroup {
  int64_t n;
  std::vector<int64_t> elements;  // [grams, n]
  int64_t first;                  // index of the first among all n-grams
  int64_t count() const { return static_cast<int64_t>(elements.size()) / n; }
};

Result<std::vector<NgramGroup>> parse_pool(const NodeView& node, int64_t& total) {
  INVAR_TRY(const std::vector<int64_t> pool, node.ints_attr("pool_int64s"));
  INVAR_TRY(const std::vector<int64_t> starts, node.ints_attr("ngram_counts"));
  std::vector<NgramGroup> all;
  total = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t begin = starts[i],
                  end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    const auto n = static_cast<int64_t>(i + 1);
    if (begin < 0 || begin > end || end > static_cast<int64_t>(pool.size()) || (end - begin) % n)
      return bad_input("attribute \"ngram_counts\" does not divide the pool");
    all.push_back({n, {pool.begin() + begin, pool.begin() + end}, total});
    total += (end - begin) / n;
  }
  return all;
}

Status tf_idf(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1,
                             {"max_gram_length", "max_skip_count", "min_gram_length", "mode", "ngram_counts",
                              "ngram_indexes", "pool_int64s", "weights"}));
  INVAR_TRY(const int64_t longest, node.int_attr("max_gram_length", 0));
  INVAR_TRY(const int64_t shortest, node.int_attr("min_gram_length", 0));
  INVAR_TRY(const int64_t skips, node.int_attr("max_skip_count", 0));
  INVAR_TRY(const int64_t mode, enum_attr(node, "mode", "TF IDF TFIDF", "TF"));
  INVAR_TRY(const std::vector<int64_t> columns, node.ints_attr("ngram_indexes"));
  int64_t total = 0;
  INVAR_TRY(const std::vector<NgramGroup> pool, parse_pool(node, total));
  std::vector<float> weights(static_cast<size_t>(total), 1);
  if (auto given = node.attribute("weights")) {
    auto list = dyn_cast<DenseF32ArrayAttr>(given);
    if (!list || list.size() != total)
      return bad_input("attribute \"weights\" is not a number for each n-gram");
    weights.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  }
  const Shape x = node.shape(0);
  constexpr int64_t limit = 1 << 20;
  if (x.empty() || x.size() > 2 || !x.back().constant() || !isa<IntegerType>(element_of(node.in(0))))
    return not_covered("an operand " + text_of(x));
  if (shortest < 1 || longest < shortest || longest > 16 || skips < 0 || skips > 32)
    return not_covered("n-grams of lengths outside 1 to 16, or more than 32 skips");
  if (static_cast<int64_t>(columns.size()) != total)
    return bad_input("attribute \"ngram_indexes\" is not a number for each n-gram");
  int64_t width = 0;
  for (int64_t c : columns) {
    if (c < 0 || c >= limit) return bad_input("attribute \"ngram_indexes\" contains " + std::to_string(c));
    width = std::max(width, c + 1);
  }
  ExprBuilder f(node);
  const Dim rows = x.size() == 2 ? x[0] : Dim::of(1), one = Dim::of(1);
  const int64_t length = x.back().value;
  const Value all = f.reshape(f.to_i64(node.in(0)), {rows, Dim::of(length), one});
  SmallVector<Value> counts;
  for (const NgramGroup& g : pool) {
    Value sum;
    for (int64_t skip = 0; skip <= (g.n == 1 ? 0 : skips); ++skip) {
      const int64_t windows = length - (g.n - 1) * (skip + 1);
      if (g.n < shortest || g.n > longest || g.elements.empty() || windows < 1) continue;
      Value found;
      for (int64_t i = 0; i < g.n; ++i) {
        std::vector<int64_t> elements;
        for (int64_t k = 0; k < g.count(); ++k)
          elements.push_back(g.elements[static_cast<size_t>(k * g.n + i)]);
        const Value here =
            f.make<EqualOp>({f.slice(all, 1, i * (skip + 1), windows), node.constant(elements)});
        found = found ? f.logical_and(found, here) : here;
      }
      const Value count = f.make<ReduceSumOp>(
          f.to_f32(found), {node.attr("axes", Ints(int64_t{1})), node.attr("keepdims", int64_t{0})});
      sum = sum ? f.add(sum, count) : count;
    }
    if (g.count()) counts.push_back(sum ? sum : f.expand(f.f32(0), {rows, Dim::of(g.count())}));
  }
  // Columns without an n-gram read the last column, which is 0.
  counts.push_back(f.expand(f.f32(0), {rows, one}));
  weights.push_back(0);
  std::vector<int64_t> from(static_cast<size_t>(width), total);
  for (size_t i = 0; i < columns.size(); ++i) from[static_cast<size_t>(columns[i])] = static_cast<int64_t>(i);
  Value out = f.concat(counts, 1);
  if (mode == 1) out = f.to_f32(f.less(f.f32(0), out));
  if (mode != 0) out = f.mul(out, f.f32_tensor(weights, {total + 1}));
  out = f.make<GatherOp>({out, node.constant(from)}, node.attr("axis", int64_t{1}));
  Shape shape = {Dim::of(width)};
  if (x.size() == 2) shape.insert(shape.begin(), x[0]);
  out = f.reshape(out, shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

}  // namespace

void decompose_tfidf_vectorizer(RuleRegistry& registry) {
  registry.add_rule("TfIdfVectorizer", 9, tf_idf);
}

}  // namespace invar::compiler
