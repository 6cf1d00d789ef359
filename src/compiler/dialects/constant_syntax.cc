// Converts constant bytes to hexadecimal when MLIR text is printed, and back when it is parsed.
#include <optional>

#include "compiler/dialects/constant_data.h"
#include "compiler/dialects/dialects.h"
#include "mlir/IR/Builders.h"

namespace invar::compiler {
using namespace mlir;

namespace {

constexpr char kData[] = "data", kParams[] = "params";

using Convert = StringAttr(StringAttr);
using ConvertWithin = bool(NamedAttrList&, Convert*);

StringAttr to_hex_attr(StringAttr bytes) {
  return StringAttr::get(bytes.getContext(), hex_from_bytes(std::string_view(bytes.getValue())));
}
// Null if the text is not hexadecimal.
StringAttr from_hex_attr(StringAttr hex) {
  const std::optional<std::string> bytes = bytes_from_hex(std::string_view(hex.getValue()));
  return bytes ? StringAttr::get(hex.getContext(), *bytes) : StringAttr();
}

// Replaces the value of `data`, if it is a string. False if the conversion fails.
bool convert_data(NamedAttrList& attrs, Convert* convert) {
  auto data = dyn_cast_or_null<StringAttr>(attrs.get(kData));
  if (!data) return true;
  const StringAttr converted = convert(data);
  if (converted) attrs.set(kData, converted);
  return static_cast<bool>(converted);
}

// The same in each tensor, a nested dictionary, of `params`.
bool convert_params(NamedAttrList& attrs, Convert* convert) {
  auto params = dyn_cast_or_null<DictionaryAttr>(attrs.get(kParams));
  if (!params) return true;
  NamedAttrList list(params);
  bool ok = true;
  for (NamedAttribute param : params)
    if (auto tensor = dyn_cast<DictionaryAttr>(param.getValue())) {
      NamedAttrList fields(tensor);
      ok &= convert_data(fields, convert);
      list.set(param.getName(), fields.getDictionary(params.getContext()));
    }
  attrs.set(kParams, list.getDictionary(params.getContext()));
  return ok;
}

ParseResult parse_attrs(OpAsmParser& parser, NamedAttrList& attrs, ConvertWithin* convert_within) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(attrs)) return failure();
  if (convert_within(attrs, from_hex_attr)) return success();
  return parser.emitError(loc, "constant data are not lower-case hexadecimal");
}

// `shown` is printed elsewhere in the operation's syntax.
void print_attrs(OpAsmPrinter& printer, DictionaryAttr attrs, ConvertWithin* convert_within,
                 StringRef shown) {
  NamedAttrList list(attrs);
  convert_within(list, to_hex_attr);
  printer.printOptionalAttrDict(list, {shown});
}

}  // namespace

ParseResult parseWeightAttrs(OpAsmParser& parser, NamedAttrList& attrs) {
  return parse_attrs(parser, attrs, convert_data);
}

void printWeightAttrs(OpAsmPrinter& printer, Operation*, DictionaryAttr attrs) {
  print_attrs(printer, attrs, convert_data, "name");
}

ParseResult parseNodeAttrs(OpAsmParser& parser, NamedAttrList& attrs) {
  return parse_attrs(parser, attrs, convert_params);
}

void printNodeAttrs(OpAsmPrinter& printer, Operation*, DictionaryAttr attrs) {
  print_attrs(printer, attrs, convert_params, "op_type");
}

}  // namespace invar::compiler
