// Einsum: contracts the operands from left to right, each contraction as one batched matrix
// product.
#include <numeric>

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

// An operand and the subscript letter of each of its dimensions.
struct Term {
  Value x;
  std::string letters;
  Dim of(char c) const { return shape_of(x.getType())[letters.find(c)]; }
  bool has(char c) const { return letters.find(c) != letters.npos; }
};

// An ellipsis becomes letters of its own, right-aligned: the last letter is that of its last
// dimension.
constexpr char kFirstOfEllipsis = 1, kLastOfEllipsis = 6;

// The equation with each ellipsis replaced by letters.
Result<std::string> expand_ellipsis(const NodeView& node, llvm::StringRef equation) {
  std::string text, all(kLastOfEllipsis, 0);
  for (char c : equation)
    if (c != ' ') text += c;
  std::iota(all.begin(), all.end(), kFirstOfEllipsis);
  const size_t arrow = std::min(text.find("->"), text.size());
  std::string out;
  size_t begin = 0, max_dimensions = 0;
  auto with_letters = [&](std::string term, size_t dimensions) {
    if (const size_t at = term.find("..."); at != term.npos)
      term.replace(at, 3, all.substr(all.size() - dimensions));
    return term;
  };
  for (unsigned operand = 0; begin <= arrow; ++operand) {
    const size_t end = std::min(text.find(',', begin), arrow);
    const std::string term = text.substr(begin, end - begin);
    size_t dimensions = 0;
    if (term.find("...") != term.npos) {
      if (!node.has(operand))
        return bad_input("attribute \"equation\" has more terms than there are operands");
      const size_t rank = node.shape(operand).size(), letters = term.size() - 3;
      if (rank < letters || rank - letters > all.size())
        return bad_input("operand " + std::to_string(operand) + " does not fit \"" + term + "\"");
      dimensions = rank - letters;
    }
    max_dimensions = std::max(max_dimensions, dimensions);
    out += (operand ? "," : "") + with_letters(term, dimensions);
    begin = end + 1;
  }
  // The ellipsis dimensions of the result come first where there is no "->".
  if (arrow < text.size()) out += with_letters(text.substr(arrow), max_dimensions);
  return out;
}

// Parses "ab, bc -> ac" to {"ab", "bc", "ac"}. Without "->" the result has the ellipsis letters,
// then the letters that occur once, in alphabetical order.
Result<std::vector<std::string>> parse_equation(const std::string& text) {
  std::vector<std::string> terms(1);
  const size_t arrow = text.find("->");
  for (char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else if (((c | 32) < 'a' || (c | 32) > 'z') && (c < kFirstOfEllipsis || c > kLastOfEllipsis))
      return bad_input("attribute \"equation\" contains '" + std::string(1, c) + "'");
    else
      terms.back() += c;
  }
  std::string result = arrow == text.npos ? "" : text.substr(arrow + 2), all;
  for (const std::string& t : terms) all += t;
  if (arrow == text.npos) {
    std::sort(all.begin(), all.end());
    for (char c : all)
      if (std::count(all.begin(), all.end(), c) == 1 ||
          (c <= kLastOfEllipsis && result.find(c) == result.npos))
        result += c;
  }
  for (char c : result)
    if (all.find(c) == all.npos || std::count(result.begin(), result.end(), c) != 1)
      return bad_input("the result of attribute \"equation\" has '" + std::string(1, c) +
                       "' twice or of no operand");
  terms.push_back(result);
  return terms;
}

// A repeated letter takes the diagonal: every (n + 1)-th of n * n elements.
Status extract_diagonals(NodeView& node, Term& t) {
  for (size_t i = 0; i < t.letters.size(); ++i) {
    const size_t j = t.letters.find(t.letters[i], i + 1);
    if (j == t.letters.npos) continue;
    const Shape from = shape_of(t.x.getType());
    if (!known_equal(from[i], from[j]) || !from[i].constant() || from[i].value < 1)
      return not_covered("a diagonal of " + text_of(from[i]) + " by " + text_of(from[j]));
    SmallVector<int64_t> perm;
    Shape rest;
    std::string letters;
    for (size_t d = 0; d < from.size(); ++d)
      if (d != i && d != j)
        perm.push_back(static_cast<int64_t>(d)), rest.push_back(from[d]), letters += t.letters[d];
    perm.push_back(static_cast<int64_t>(i)), perm.push_back(static_cast<int64_t>(j));
    const int64_t n = from[i].value;
    Shape flat = rest, diagonal = rest;
    flat.push_back(Dim::of(n * n)), diagonal.push_back(Dim::of(n));
    SmallVector<int64_t> starts(flat.size(), 0), steps(flat.size(), 1);
    steps.back() = n + 1;
    INVAR_TRY(t.x, transpose(node, t.x, perm));
    INVAR_TRY(t.x, reshape(node, t.x, flat));
    INVAR_TRY(t.x,
              node.make<SliceOp>(t.x, {node.attr("starts", Ints(starts)), node.attr("steps", Ints(steps))},
                                 tensor_of(diagonal, element_of(t.x))));
    t.letters = letters + t.letters[i];
    return extract_diagonals(node, t);
  }
  return {};
}

// Drops dimensions of 1 that broadcast to longer ones of other operands.
Status drop_broadcast_dims(NodeView& node, Term& t, const std::vector<Term>& all) {
  Shape shape;
  std::string letters;
  const Shape from = shape_of(t.x.getType());
  for (size_t d = 0; d < from.size(); ++d) {
    const char c = t.letters[d];
    const bool spreads = from[d] == Dim::of(1) &&
                         llvm::any_of(all, [&](const Term& o) { return o.has(c) && o.of(c) != Dim::of(1); });
    if (!spreads) shape.push_back(from[d]), letters += c;
  }
  INVAR_TRY(t.x, reshape(node, t.x, shape));
  t.letters = letters;
  return {};
}

// Sums over the dimensions whose letters are not among `kept`.
Status sum_out(NodeView& node, Term& t, const std::string& kept) {
  SmallVector<int64_t> axes;
  std::string left;
  for (size_t d = 0; d < t.letters.size(); ++d)
    if (kept.find(t.letters[d]) == kept.npos)
      axes.push_back(static_cast<int64_t>(d));
    else
      left += t.letters[d];
  if (axes.empty()) return {};
  INVAR_TRY(t.x,
            node.make<ReduceSumOp>(t.x, {node.attr("axes", Ints(axes)), node.attr("keepdims", int64_t{0})}));
  t.letters = left;
  return {};
}

Status transpose_to(NodeView& node, Term& t, const std::string& letters) {
  if (t.letters == letters) return {};
  SmallVector<int64_t> perm;
  for (char c : letters) perm.push_back(static_cast<int64_t>(t.letters.find(c)));
  INVAR_TRY(t.x, transpose(node, t.x, perm));
  t.letters = letters;
  return {};
}

// Reshapes to [batch..., rows, inner].
Status flatten_to_batched_matrix(NodeView& node, Term& t, const std::string& batch, const std::string& rows,
                                 const std::string& inner) {
  INVAR_CHECK_OK(transpose_to(node, t, batch + rows + inner));
  Shape shape;
  for (char c : batch) shape.push_back(t.of(c));
  for (const std::string& group : {rows, inner}) {
    Shape dims;
    for (char c : group) dims.push_back(t.of(c));
    const std::optional<DimExpr> n = element_count(dims);
    if (!n) return not_covered("dimensions " + text_of(dims) + " as one");
    shape.push_back(Dim::of(*n));
  }
  INVAR_TRY(t.x, reshape(node, t.x, shape));
  return {};
}

Result<Term> contract(NodeView& node, Term a, Term b, const std::string& kept) {
  INVAR_CHECK_OK(sum_out(node, a, kept + b.letters));
  INVAR_CHECK_OK(sum_out(node, b, kept + a.letters));
  std::string batch, inner, rows, columns;
  Shape shape;
  for (char c : a.letters) {
    if (b.has(c) && !may_be_equal(a.of(c), b.of(c)))
      return not_covered("dimensions '" + std::string(1, c) + "': " + text_of(a.of(c)) + " and " +
                         text_of(b.of(c)));
    (!b.has(c) ? rows : kept.find(c) != kept.npos ? batch : inner) += c;
  }
  for (char c : b.letters)
    if (!a.has(c)) columns += c;
  for (char c : batch) shape.push_back(a.of(c));
  for (char c : rows) shape.push_back(a.of(c));
  for (char c : columns) shape.push_back(b.of(c));
  // Reshapes one dimension at a time, so that each is checked and not only their product.
  for (size_t i = 0; i < b.letters.size(); ++i) {
    Shape asked = shape_of(b.x.getType());
    if (!a.has(b.letters[i]) || known_equal(a.of(b.letters[i]), asked[i])) continue;
    asked[i] = a.of(b.letters[i]);
    INVAR_TRY(b.x, reshape(node, b.x, asked));
  }
  INVAR_CHECK_OK(flatten_to_batched_matrix(node, a, batch, rows, inner));
  INVAR_CHECK_OK(flatten_to_batched_matrix(node, b, batch, columns, inner));
  INVAR_TRY(Value out, matrix_product(node, a.x, b.x, /*transposed=*/true));
  INVAR_TRY(out, reshape(node, out, shape));
  return Term{out, batch + rows + columns};
}

Status einsum(NodeView& node) {
  auto equation = dyn_cast_or_null<StringAttr>(node.attribute("equation"));
  if (!equation) return bad_input("attribute \"equation\" is missing");
  const auto operands = static_cast<unsigned>(equation.getValue().split("->").first.count(',') + 1);
  INVAR_CHECK_OK(node.expect(operands, operands, {"equation"}));
  INVAR_TRY(const std::string text, expand_ellipsis(node, equation.getValue()));
  INVAR_TRY(const std::vector<std::string> terms, parse_equation(text));
  for (unsigned i = 0; i < operands; ++i)
    if (node.shape(i).size() != terms[i].size())
      return bad_input("operand " + std::to_string(i) + " has not as many dimensions as \"" + terms[i] +
                       "\"");
  std::vector<Term> all;
  for (unsigned i = 0; i < operands; ++i) {
    Term& t = all.emplace_back(Term{node.in(i), terms[i]});
    INVAR_CHECK_OK(extract_diagonals(node, t));
  }
  const std::vector<Term> given = all;
  for (Term& t : all) INVAR_CHECK_OK(drop_broadcast_dims(node, t, given));
  Term total = all[0];
  for (unsigned i = 1; i < operands; ++i) {
    std::string kept = terms.back();
    for (unsigned later = i + 1; later < operands; ++later) kept += all[later].letters;
    INVAR_TRY(total, contract(node, total, all[i], kept));
  }
  INVAR_CHECK_OK(sum_out(node, total, terms.back()));
  INVAR_CHECK_OK(transpose_to(node, total, terms.back()));
  return node.replace(total.x);
}

}  // namespace

void decompose_einsum(RuleRegistry& registry) {
  registry.add_rule("Einsum", 12, einsum, Widening::wrapping);
}

}  // namespace invar::compiler
