// Einsum: each pair of operands is one product of matrices whose rows, columns and inner dimension are those of the letters.
#include <numeric>

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

// An operand and the letter of each of its dimensions.
struct Term {
  Value x;
  std::string letters;
  Extent of(char c) const { return shape_of(x.getType())[letters.find(c)]; }
  bool has(char c) const { return letters.find(c) != letters.npos; }
};

// "..." becomes letters of its own: the last of them for the last dimension, as many as the operands have.
constexpr char kFirstOfEllipsis = 1, kLastOfEllipsis = 6;

// The equation with an ellipsis spelled out for each operand.
Result<std::string> spelled_out(const Node& node, llvm::StringRef equation) {
  std::string text, all(kLastOfEllipsis, 0);
  for (char c : equation)
    if (c != ' ') text += c;
  std::iota(all.begin(), all.end(), kFirstOfEllipsis);
  const size_t arrow = std::min(text.find("->"), text.size());
  std::string out;
  size_t begin = 0, most = 0;
  auto spelled = [&](std::string term, size_t dimensions) {
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
    most = std::max(most, dimensions);
    out += (operand ? "," : "") + spelled(term, dimensions);
    begin = end + 1;
  }
  // Without a result, dimensions of an ellipsis come first.
  if (arrow < text.size()) out += spelled(text.substr(arrow), most);
  return out;
}

// "ab, bc -> ac" -> {"ab", "bc", "ac"}. Without "->", the result has the letters that stand once, in the order of the alphabet,
// behind those of an ellipsis.
Result<std::vector<std::string>> terms_of(const std::string& text) {
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

// A letter that stands twice: every (n + 1)-th of n times n elements.
Status take_diagonals(Node& node, Term& t) {
  for (size_t i = 0; i < t.letters.size(); ++i) {
    const size_t j = t.letters.find(t.letters[i], i + 1);
    if (j == t.letters.npos) continue;
    const Shape from = shape_of(t.x.getType());
    if (!same(from[i], from[j]) || !from[i].constant() || from[i].value < 1)
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
    flat.push_back(Extent::of(n * n)), diagonal.push_back(Extent::of(n));
    SmallVector<int64_t> starts(flat.size(), 0), steps(flat.size(), 1);
    steps.back() = n + 1;
    INVAR_TRY(t.x, permuted(node, t.x, perm));
    INVAR_TRY(t.x, shaped(node, t.x, flat));
    INVAR_TRY(t.x,
              node.make<SliceOp>(t.x, {node.attr("starts", Sizes(starts)), node.attr("steps", Sizes(steps))},
                                 tensor_of(diagonal, element_of(t.x))));
    t.letters = letters + t.letters[i];
    return take_diagonals(node, t);
  }
  return {};
}

// Dimensions of 1 that an ellipsis spreads over longer ones of other operands.
Status drop_ones(Node& node, Term& t, const std::vector<Term>& all) {
  Shape shape;
  std::string letters;
  const Shape from = shape_of(t.x.getType());
  for (size_t d = 0; d < from.size(); ++d) {
    const char c = t.letters[d];
    const bool spreads =
        c <= kLastOfEllipsis && from[d] == Extent::of(1) &&
        llvm::any_of(all, [&](const Term& o) { return o.has(c) && o.of(c) != Extent::of(1); });
    if (!spreads) shape.push_back(from[d]), letters += c;
  }
  INVAR_TRY(t.x, shaped(node, t.x, shape));
  t.letters = letters;
  return {};
}

// Dimensions whose letters are not among `kept` are summed.
Status sum_out(Node& node, Term& t, const std::string& kept) {
  SmallVector<int64_t> axes;
  std::string left;
  for (size_t d = 0; d < t.letters.size(); ++d)
    if (kept.find(t.letters[d]) == kept.npos)
      axes.push_back(static_cast<int64_t>(d));
    else
      left += t.letters[d];
  if (axes.empty()) return {};
  INVAR_TRY(t.x,
            node.make<ReduceSumOp>(t.x, {node.attr("axes", Sizes(axes)), node.attr("keepdims", int64_t{0})}));
  t.letters = left;
  return {};
}

Status order(Node& node, Term& t, const std::string& letters) {
  if (t.letters == letters) return {};
  SmallVector<int64_t> perm;
  for (char c : letters) perm.push_back(static_cast<int64_t>(t.letters.find(c)));
  INVAR_TRY(t.x, permuted(node, t.x, perm));
  t.letters = letters;
  return {};
}

// As [..., rows, inner], where `batch` stands in front.
Status as_matrix(Node& node, Term& t, const std::string& batch, const std::string& rows,
                 const std::string& inner) {
  INVAR_CHECK_OK(order(node, t, batch + rows + inner));
  Shape shape;
  for (char c : batch) shape.push_back(t.of(c));
  for (const std::string& group : {rows, inner}) {
    Shape dims;
    for (char c : group) dims.push_back(t.of(c));
    const std::optional<Polynomial> n = count_of(dims);
    if (!n) return not_covered("dimensions " + text_of(dims) + " as one");
    shape.push_back(Extent::of(*n));
  }
  INVAR_TRY(t.x, shaped(node, t.x, shape));
  return {};
}

// A product of matrices of integers, the second transposed: modulo 2^n, whatever the order of the sums.
Result<Value> whole_product(Node& node, Value a, Value b) {
  Shape rows = shape_of(a.getType()), columns = shape_of(b.getType());
  rows.insert(rows.end() - 1, Extent::of(1)), columns.insert(columns.end() - 2, Extent::of(1));
  INVAR_TRY(a, shaped(node, a, rows));
  INVAR_TRY(b, shaped(node, b, columns));
  INVAR_TRY(Value all, node.make<MulOp>({a, b}));
  return node.make<ReduceSumOp>(all, {node.attr("axes", Sizes(static_cast<int64_t>(rows.size()) - 1)),
                                      node.attr("keepdims", int64_t{0})});
}

Result<Term> contracted(Node& node, Term a, Term b, const std::string& kept) {
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
  // Letter by letter: of several at once only the product would be asked.
  for (size_t i = 0; i < b.letters.size(); ++i) {
    Shape asked = shape_of(b.x.getType());
    if (!a.has(b.letters[i]) || same(a.of(b.letters[i]), asked[i])) continue;
    asked[i] = a.of(b.letters[i]);
    INVAR_TRY(b.x, shaped(node, b.x, asked));
  }
  INVAR_CHECK_OK(as_matrix(node, a, batch, rows, inner));
  INVAR_CHECK_OK(as_matrix(node, b, batch, columns, inner));
  const bool whole = element_of(a.x).isIntOrIndex();
  INVAR_TRY(Value out, whole ? whole_product(node, a.x, b.x) : product(node, a.x, b.x, /*transposed=*/true));
  INVAR_TRY(out, shaped(node, out, shape));
  return Term{out, batch + rows + columns};
}

Status einsum(Node& node) {
  auto equation = dyn_cast_or_null<StringAttr>(node.attribute("equation"));
  if (!equation) return bad_input("attribute \"equation\" is missing");
  const auto operands = static_cast<unsigned>(equation.getValue().split("->").first.count(',') + 1);
  INVAR_CHECK_OK(node.expect(operands, operands, {"equation"}));
  INVAR_TRY(const std::string text, spelled_out(node, equation.getValue()));
  INVAR_TRY(const std::vector<std::string> terms, terms_of(text));
  for (unsigned i = 0; i < operands; ++i)
    if (node.shape(i).size() != terms[i].size())
      return bad_input("operand " + std::to_string(i) + " has not as many dimensions as \"" + terms[i] +
                       "\"");
  std::vector<Term> all;
  for (unsigned i = 0; i < operands; ++i) {
    Term& t = all.emplace_back(Term{node.in(i), terms[i]});
    INVAR_CHECK_OK(take_diagonals(node, t));
  }
  const std::vector<Term> given = all;
  for (Term& t : all) INVAR_CHECK_OK(drop_ones(node, t, given));
  Term total = all[0];
  for (unsigned i = 1; i < operands; ++i) {
    std::string kept = terms.back();
    for (unsigned later = i + 1; later < operands; ++later) kept += all[later].letters;
    INVAR_TRY(total, contracted(node, total, all[i], kept));
  }
  INVAR_CHECK_OK(sum_out(node, total, terms.back()));
  INVAR_CHECK_OK(order(node, total, terms.back()));
  return node.replace(total.x);
}

}  // namespace

void decompose_einsum(Rooms& rooms) {
  rooms.on("Einsum", 12, einsum, Widens::wrapping);
}

}  // namespace invar::compiler
