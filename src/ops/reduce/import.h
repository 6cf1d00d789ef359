// Einsum: each pair of operands is one product of matrices whose rows, columns and inner dimension are those of the letters.
#pragma once
#include "ir/compose.h"

namespace invar::ir {
namespace {

// An operand and the letter of each of its dimensions.
struct Term {
  Value x;
  std::string letters;
  Extent of(char c) const { return shape_of(x.getType())[letters.find(c)]; }
  bool has(char c) const { return letters.find(c) != letters.npos; }
};

// "ab, bc -> ac" -> {"ab", "bc", "ac"}. Without "->", the result has the letters that stand once, in the order of the alphabet.
Result<std::vector<std::string>> terms_of(llvm::StringRef equation) {
  std::string text;
  for (char c : equation)
    if (c != ' ') text += c;
  if (text.find('.') != text.npos) return not_covered("an ellipsis");
  std::vector<std::string> terms(1);
  const size_t arrow = text.find("->");
  for (char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else if ((c | 32) < 'a' || (c | 32) > 'z')
      return bad_input("attribute \"equation\" contains '" + std::string(1, c) + "'");
    else if (terms.back().find(c) != std::string::npos)
      return not_covered("a diagonal");
    else
      terms.back() += c;
  }
  std::string result = arrow == text.npos ? "" : text.substr(arrow + 2), all;
  for (const std::string& t : terms) all += t;
  if (arrow == text.npos) {
    std::sort(all.begin(), all.end());
    for (char c : all)
      if (std::count(all.begin(), all.end(), c) == 1) result += c;
  }
  for (char c : result)
    if (all.find(c) == all.npos || std::count(result.begin(), result.end(), c) != 1)
      return bad_input("the result of attribute \"equation\" has '" + std::string(1, c) +
                       "' twice or of no operand");
  terms.push_back(result);
  return terms;
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
    Extent n = Extent::of(1);
    for (char c : group) {
      if (group.size() == 1)
        n = t.of(c);
      else if (!t.of(c).constant() || __builtin_mul_overflow(n.value, t.of(c).value, &n.value))
        return not_covered("several dimensions as one, of which one is unknown");
    }
    shape.push_back(n);
  }
  INVAR_TRY(t.x, shaped(node, t.x, shape));
  return {};
}

Result<Term> contracted(Node& node, Term a, Term b, const std::string& kept) {
  INVAR_CHECK_OK(sum_out(node, a, kept + b.letters));
  INVAR_CHECK_OK(sum_out(node, b, kept + a.letters));
  std::string batch, inner, rows, columns;
  Shape shape;
  for (char c : a.letters) {
    if (b.has(c) && !same(a.of(c), b.of(c)))
      return not_covered("dimensions '" + std::string(1, c) + "': " + text_of(a.of(c)) + " and " +
                         text_of(b.of(c)));
    (!b.has(c) ? rows : kept.find(c) != kept.npos ? batch : inner) += c;
  }
  for (char c : b.letters)
    if (!a.has(c)) columns += c;
  for (char c : batch) shape.push_back(a.of(c));
  for (char c : rows) shape.push_back(a.of(c));
  for (char c : columns) shape.push_back(b.of(c));
  INVAR_CHECK_OK(as_matrix(node, a, batch, rows, inner));
  INVAR_CHECK_OK(as_matrix(node, b, batch, columns, inner));
  INVAR_TRY(Value out, product(node, a.x, b.x, /*transposed=*/true));
  INVAR_TRY(out, shaped(node, out, shape));
  return Term{out, batch + rows + columns};
}

Status einsum(Node& node) {
  auto equation = dyn_cast_or_null<StringAttr>(node.attribute("equation"));
  if (!equation) return bad_input("attribute \"equation\" is missing");
  INVAR_TRY(const std::vector<std::string> terms, terms_of(equation.getValue()));
  const auto operands = static_cast<unsigned>(terms.size() - 1);
  INVAR_CHECK_OK(node.expect(operands, operands, {"equation"}));
  for (unsigned i = 0; i < operands; ++i)
    if (node.shape(i).size() != terms[i].size())
      return bad_input("operand " + std::to_string(i) + " has not as many dimensions as \"" + terms[i] +
                       "\"");
  Term total{node.in(0), terms[0]};
  for (unsigned i = 1; i < operands; ++i) {
    std::string kept = terms.back();
    for (unsigned later = i + 1; later < operands; ++later) kept += terms[later];
    INVAR_TRY(total, contracted(node, total, {node.in(i), terms[i]}, kept));
  }
  INVAR_CHECK_OK(sum_out(node, total, terms.back()));
  INVAR_CHECK_OK(order(node, total, terms.back()));
  return node.replace(total.x);
}

}  // namespace
}  // namespace invar::ir
