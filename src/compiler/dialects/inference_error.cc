// Type inference of operations. Its refusals are typed notes of MLIR diagnostics.
#include "compiler/dialects/inference_error.h"

#include "compiler/dialects/dialects.h"
#include "compiler/passes/constant_evaluator.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace invar::compiler {
using namespace mlir;

namespace {

// The keys of the note's dictionary. A note without kRefusal is none of ours.
constexpr char kRefusal[] = "refusal", kKind[] = "kind", kSubject[] = "subject";
constexpr char kSymbol[] = "symbol", kSize[] = "size";
constexpr char kNotCovered[] = "not_covered";

LogicalResult with_refusal(InFlightDiagnostic error, const Error& refusal,
                           const std::optional<Constraint>& constraint = {}) {
  MLIRContext* context = error.getUnderlyingDiagnostic()->getLocation().getContext();
  Builder build(context);
  SmallVector<NamedAttribute> data = {
      build.getNamedAttr(kRefusal, build.getStringAttr(kNotCovered)),
      build.getNamedAttr(kKind, build.getI64IntegerAttr(static_cast<int64_t>(refusal.kind))),
      build.getNamedAttr(kSubject, build.getStringAttr(refusal.subject))};
  if (constraint) {
    data.push_back(build.getNamedAttr(kSymbol, build.getStringAttr(constraint->symbol)));
    data.push_back(build.getNamedAttr(kSize, DimsAttr::get(context, {constraint->size})));
  }
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

// The dictionary of a note that with_refusal() wrote; else null.
DictionaryAttr refusal_data(Diagnostic& note) {
  for (const DiagnosticArgument& argument : note.getArguments())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      if (auto data = dyn_cast<DictionaryAttr>(argument.getAsAttribute()); data && data.contains(kRefusal))
        return data;
  return {};
}

}  // namespace

std::string refusal_of_type(Type operand) {
  const Type element = getElementTypeOrSelf(operand);
  std::string name;
  if (const std::optional<DType> type = dtype_of(element))
    name = name_of(*type);
  else
    llvm::raw_string_ostream(name) << element;  // complex<f32>, which has no name of ours
  return "elements of type " + name + " are not covered there";
}

LogicalResult refuse(Operation* op, const DimText& why) {
  return with_refusal(op->emitOpError(why.text), not_covered(why));
}

LogicalResult infer_result_type(StringRef name, std::optional<Location> loc, ValueRange operands,
                                DictionaryAttr attributes, SmallVectorImpl<Type>& out) {
  const auto refused = [&](const Error& e, const std::optional<Constraint>& constraint) -> LogicalResult {
    return loc ? with_refusal(emitError(*loc, e.message), e, constraint) : failure();
  };
  std::vector<ValueType> types;
  for (Value v : operands) {
    const std::optional<DType> dtype = dtype_of(getElementTypeOrSelf(v.getType()));
    if (!dtype) return refused(not_covered(refusal_of_type(v.getType())), {});
    types.push_back({*dtype, shape_of(v.getType())});
  }
  const Result<Attributes> attrs = kernel_attributes(attributes.getValue());
  if (!attrs) return emitOptionalError(loc, attrs.error().message);
  InferredCall call(std::move(types), *attrs);
  const ResultRule rule = result_rule(std::string_view(name.split('.').second));
  Result<ValueType> type = rule(call);
  if (type) {
    out.push_back(tensor_of(type->shape, type_of(attributes.getContext(), type->dtype)));
    return success();
  }
  if (type.error().code != Code::not_covered) return emitOptionalError(loc, type.error().message);
  return refused(type.error(), call.constraint);
}

InferenceError inference_error_of(Diagnostic& error) {
  InferenceError refusal{.error = bad_input(error.str()), .operand = operand_of_refused_type(error)};
  for (Diagnostic& note : error.getNotes())
    if (const DictionaryAttr data = refusal_data(note)) {
      refusal.error.code = Code::not_covered;
      refusal.error.kind = static_cast<ErrorKind>(data.getAs<IntegerAttr>(kKind).getInt());
      refusal.error.subject = data.getAs<StringAttr>(kSubject).str();
      const auto symbol = data.getAs<StringAttr>(kSymbol);
      const auto size = data.getAs<DimsAttr>(kSize);
      if (symbol && size) refusal.constraint = Constraint{symbol.str(), *size.getDims()[0]};
    }
  return refusal;
}

}  // namespace invar::compiler
