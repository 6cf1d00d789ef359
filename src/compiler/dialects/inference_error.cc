// Refusals of type inference, as typed notes of MLIR diagnostics.
#include "compiler/dialects/inference_error.h"

#include "compiler/dialects/dialects.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

namespace invar::compiler {
using namespace mlir;

namespace {

// The keys of the note's dictionary. A note without kRefusal is none of ours.
constexpr char kRefusal[] = "refusal", kSymbol[] = "symbol", kSize[] = "size";
constexpr char kNotCovered[] = "not_covered";

LogicalResult emit_not_covered(Location loc, const Twine& message,
                               const std::optional<Constraint>& constraint) {
  Builder build(loc.getContext());
  SmallVector<NamedAttribute> data = {build.getNamedAttr(kRefusal, build.getStringAttr(kNotCovered))};
  if (constraint) {
    data.push_back(build.getNamedAttr(kSymbol, build.getStringAttr(constraint->symbol)));
    data.push_back(build.getNamedAttr(kSize, DimsAttr::get(loc.getContext(), {constraint->size})));
  }
  InFlightDiagnostic error = emitError(loc, message);
  error.attachNote() << build.getDictionaryAttr(data);
  return error;
}

// The operand that the verifier of its type refuses. TableGen writes the diagnostic, whose
// arguments are "'", the operation, "' op ", "operand" or "result", " #", the number, the types
// that it must be of, and the type that it is of.
std::optional<unsigned> operand_of_refused_type(const Diagnostic& error) {
  using Kind = DiagnosticArgument::DiagnosticArgumentKind;
  const llvm::ArrayRef<DiagnosticArgument> given = error.getArguments();
  if (given.size() != 8 || given[3].getKind() != Kind::String || given[5].getKind() != Kind::Unsigned ||
      given[7].getKind() != Kind::Type || given[3].getAsString() != "operand")
    return std::nullopt;
  return given[5].getAsUnsigned();
}

// The dictionary of a note that emit_not_covered() wrote; else null.
DictionaryAttr refusal_data(Diagnostic& note) {
  for (const DiagnosticArgument& argument : note.getArguments())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      if (auto data = dyn_cast<DictionaryAttr>(argument.getAsAttribute()); data && data.contains(kRefusal))
        return data;
  return {};
}

}  // namespace

LogicalResult mismatch(std::optional<Location> loc, const Twine& message) {
  return emitOptionalError(loc, message);
}

LogicalResult refuse(std::optional<Location> loc, const Twine& message) {
  return loc ? emit_not_covered(*loc, message, std::nullopt) : failure();
}

LogicalResult unequal_dims(std::optional<Location> loc, const Dim& a, const Dim& b, const Twine& what) {
  const std::string text = what.str() + ": " + text_of(a) + " and " + text_of(b);
  if (a.constant() && b.constant()) return mismatch(loc, text);
  if (!loc) return failure();
  return emit_not_covered(*loc, text + " cannot be shown to be equal", equality_constraint(a, b));
}

InferenceError inference_error_of(Diagnostic& error) {
  InferenceError refusal{
      .code = Code::bad_input, .message = error.str(), .operand = operand_of_refused_type(error)};
  for (Diagnostic& note : error.getNotes())
    if (const DictionaryAttr data = refusal_data(note)) {
      refusal.code = Code::not_covered;
      const auto symbol = data.getAs<StringAttr>(kSymbol);
      const auto size = data.getAs<DimsAttr>(kSize);
      if (symbol && size) refusal.constraint = Constraint{symbol.str(), *size.getDims()[0]};
    }
  return refusal;
}

Error unequal_shapes(const Shape& a, const Shape& b, const std::string& message) {
  const auto without_leading_ones = [](const Shape& s) {
    return Shape(llvm::find_if(s, [](const Dim& e) { return e != Dim::of(1); }), s.end());
  };
  const bool may_fit = may_be_equal(a, b) || may_be_equal(without_leading_ones(a), without_leading_ones(b));
  return may_fit ? not_covered(message) : bad_input(message);
}

Error shape_error(std::initializer_list<Shape> shapes, const std::string& message) {
  for (const Shape& s : shapes)
    if (!llvm::all_of(s, [](const Dim& e) { return e.constant(); })) return not_covered(message);
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
