// How torch's own functions say an operation: the texts of ops.toml, and the registry of the rooms'
// torch.cc.
#include "compiler/emit/torch/spelling.h"

#include "base/attribute_types.h"
#include "rooms.inc"

namespace invar::compiler {

#include "torch_formats.inc"

const TorchSpellings& TorchSpellings::all() {
  static const TorchSpellings spellings = [] {
    TorchSpellings s;
    for (const auto& [op, format] : kTorchFormats) s.add(op, TorchFormat(format));
#define INVAR_SPELLING(name) spell_##name(s);
    INVAR_SPELLINGS
#undef INVAR_SPELLING
    return s;
  }();
  return spellings;
}

Result<std::string> TorchSpellings::spell(const TorchCall& call) const {
  const auto found = all_.find(call.op);
  if (found != all_.end()) return spelled(found->second, call);
  return not_covered(call.op + ": torch has no spelling of it here; requires_reproducibility=True has it");
}

bool TorchCall::widens(size_t operand) const {
  const DType from = types[operand].dtype;
  return type.dtype == DType::f32 && (from == DType::bf16 || from == DType::f16);
}

std::string TorchCall::operator[](size_t operand) const {
  return operands[operand] + (widens(operand) ? ".float()" : "");
}

std::vector<std::string> TorchCall::from(size_t operand) const {
  std::vector<std::string> all;
  for (; operand < size(); ++operand) all.push_back((*this)[operand]);
  return all;
}

int64_t TorchCall::i(std::string_view name) const {
  return attributes.i(name, attribute_default(op, name).i64);
}

float TorchCall::f(std::string_view name) const {
  return attributes.f(name, attribute_default(op, name).f32);
}

std::vector<int64_t> TorchCall::ints(std::string_view name, size_t count) const {
  const auto found = attributes.find(name);
  std::vector<int64_t> list;
  if (found != attributes.end()) {
    if (const auto* one = std::get_if<int64_t>(&found->second)) list = {*one};  // a list of one in cases.txt
    if (const auto* all = std::get_if<std::vector<int64_t>>(&found->second)) list = *all;
  }
  return list.empty() ? std::vector<int64_t>(count, attribute_default(op, name).i64) : list;
}

std::string TorchCall::text(std::string_view name) const {
  return python::literal(attributes.at(name));
}

std::string TorchCall::keyword(std::string_view name) const {
  return attributes.contains(name) ? cat(", ", name, "=", text(name)) : "";
}

std::string TorchCall::keywords() const {
  std::string all;
  for (const auto& [name, value] : attributes) all += keyword(name);
  return all;
}

std::string TorchCall::shape() const {
  return torch_text(type.shape);
}

Error TorchCall::refused(const std::string& why) const {
  return not_covered(op + ": torch has none " + why + "; requires_reproducibility=True does it");
}

std::string torch_text(const Dim& dim) {
  return dim.constant() ? std::to_string(dim.value) : "{" + dim.expr.text() + "}";
}

std::string torch_text(const Shape& shape) {
  std::vector<std::string> dims;
  for (const Dim& dim : shape) dims.push_back(torch_text(dim));
  return python::tuple_of(dims);
}

static Result<std::string> formatted(llvm::StringRef format, const TorchCall& call) {
  std::string text;
  while (!format.empty()) {
    const auto [before, rest] = format.split('{');
    text += before;
    if (before.size() == format.size()) break;
    const auto [name, behind] = rest.split('}');
    size_t operand = 0;
    if (!name.getAsInteger(10, operand)) {
      if (operand >= call.size()) return bad_input(call.op + ": it has too few operands");
      text += call[operand];
    } else if (name == "*") {
      text += python::join(call.from(0));
    } else if (name == "**") {
      text += call.keywords();
    } else if (name.ends_with("=")) {
      text += call.keyword(std::string_view(name.drop_back()));
    } else if (name == "shape") {
      text += call.shape();
    } else if (name == "dtype") {
      text += call.dtype();
    } else {
      if (!call.attributes.contains(std::string_view(name)))
        return bad_input(call.op + ": attribute '" + name.str() + "' is missing");
      text += call.text(std::string_view(name));
    }
    format = behind;
  }
  return text;
}

Result<std::string> spelled(const TorchSpelling& spelling, const TorchCall& call) {
  if (const auto* format = std::get_if<TorchFormat>(&spelling)) return formatted(*format, call);
  return std::get<TorchFunction>(spelling)(call);
}

Result<std::string> spelled_as_signed(const TorchSpelling& spelling, const TorchCall& call) {
  const auto as_signed = [](DType type) {
    switch (type) {
      case DType::u16: return DType::i16;
      case DType::u32: return DType::i32;
      case DType::u64: return DType::i64;
      default: return type;
    }
  };
  TorchCall other = call;
  bool changed = false;
  for (size_t i = 0; i < call.size(); ++i) {
    const DType type = other.types[i].dtype = as_signed(call.types[i].dtype);
    if (type == call.types[i].dtype) continue;
    other.operands[i] += cat(".view(", python::dtype(type), ")");
    changed = true;
  }
  other.type.dtype = changed ? as_signed(call.type.dtype) : call.type.dtype;
  INVAR_TRY(const std::string text, spelled(spelling, other));
  return other.type.dtype == call.type.dtype ? text : cat("(", text, ").view(", call.dtype(), ")");
}

}  // namespace invar::compiler
