// Converts constant bytes to hexadecimal when MLIR text is printed, and back when it is parsed.
#include <optional>

#include "compiler/dialects/constant_data.h"
#include "compiler/dialects/dialects.h"
#include "mlir/IR/Builders.h"

namespace invar::compiler {
using namespace mlir;

namespace {

constexpr char kData[] = "data", kParams[] = "params";

StringAttr to_hex_attr(StringAttr bytes) {
  return StringAttr::get(bytes.getContext(), hex_from_bytes(std::string_view(bytes.getValue())));
}
// Null if the text is not hexadecimal.
StringAttr from_hex_attr(StringAttr hex) {
  const std::optional<std::string> bytes = bytes_from_hex(std::string_view(hex.getValue()));
  return bytes ? StringAttr::get(hex.getContext(), *bytes) : StringAttr();
}

// Replaces the value of `data`, if it is a string. False if the conversion fails.
template <class Convert>
bool convert_data(NamedAttrList& attrs, Convert convert) {
  auto data = dyn_cast_or_null<StringAttr>(attrs.get(kData));
  if (!data) return true;
  const StringAttr converted = convert(data);
  if (converted) attrs.set(kData, converted);
  return static_cast<bool>(converted);
}

// The same in each tensor, a nested dictionary, of `params`.
template <class Convert>
bool convert_params(NamedAttrList& attrs, Convert convert) {
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

ParseResult not_hexadecimal(OpAsmParser& parser, llvm::SMLoc loc) {
  return parser.emitError(loc, "constant data are not lower-case hexadecimal");
}

}  // namespace

ParseResult parseWeightAttrs(OpAsmParser& parser, NamedAttrList& attrs) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(attrs)) return failure();
  return convert_data(attrs, from_hex_attr) ? success() : not_hexadecimal(parser, loc);
}

void printWeightAttrs(OpAsmPrinter& printer, Operation*, DictionaryAttr attrs) {
  NamedAttrList list(attrs);
  convert_data(list, to_hex_attr);
  printer.printOptionalAttrDict(list, {"name"});
}

ParseResult parseNodeAttrs(OpAsmParser& parser, NamedAttrList& attrs) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(attrs)) return failure();
  return convert_params(attrs, from_hex_attr) ? success() : not_hexadecimal(parser, loc);
}

void printNodeAttrs(OpAsmPrinter& printer, Operation*, DictionaryAttr attrs) {
  NamedAttrList list(attrs);
  convert_params(list, to_hex_attr);
  printer.printOptionalAttrDict(list, {"op_type"});
}

}  // namespace invar::compiler
