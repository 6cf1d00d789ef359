// Values, names and dimensions as Python writes them.
#include "compiler/emit/torch/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "llvm/Support/ConvertUTF.h"

namespace invar::compiler::python {
namespace {

// Keywords, and what the printed source reads. In each list blanks stand around every name.
constexpr std::string_view kReserved =
    " "
    "False None True and as assert async await break class continue def del elif else except finally "
    "for from global if import in is lambda nonlocal not or pass raise return try while with yield "
    "Model Module float functional max min primitives rooms self torch ";

// Attributes of torch.nn.Module (of torch 2.13 and earlier) and of invar.modules.emitted.Module
// whose names a model's could be; the test test_names_of_a_module compares.
constexpr std::string_view kOfModules =
    " "
    "INPUTS WEIGHTS computed expect holds load loop refuse size sizes T_destination __annotations__ "
    "__call__ __class__ __delattr__ __dict__ __dir__ __doc__ __eq__ __format__ __ge__ __getattr__ "
    "__getattribute__ __getstate__ __gt__ __hash__ __init__ __init_subclass__ __le__ __lt__ "
    "__module__ __ne__ __new__ __reduce__ __reduce_ex__ __repr__ __setattr__ __setstate__ __sizeof__ "
    "__str__ __subclasshook__ __weakref__ _apply _backward_hooks _backward_pre_hooks _buffers "
    "_call_impl _compiled_call_impl _forward_hooks _forward_hooks_always_called "
    "_forward_hooks_with_kwargs _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook "
    "_load_from_state_dict _load_state_dict_post_hooks _load_state_dict_pre_hooks "
    "_maybe_warn_non_full_backward_hook _modules _named_members _non_persistent_buffers_set "
    "_parameters _register_load_state_dict_pre_hook _register_state_dict_hook "
    "_replicate_for_data_parallel _save_to_state_dict _slow_forward _state_dict_hooks "
    "_state_dict_pre_hooks _version _wrapped_call_impl add_module apply bfloat16 buffers "
    "call_super_init children compile cpu cuda double dump_patches eval extra_repr forward "
    "get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia "
    "named_buffers named_children named_modules named_parameters parameters register_backward_hook "
    "register_buffer register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook "
    "register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state "
    "set_submodule share_memory state_dict to to_empty train training type xpu zero_grad ";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string hexadecimal(uint32_t value, int digits) {
  std::string s;
  for (int i = digits - 1; i >= 0; --i) s += "0123456789abcdef"[value >> 4 * i & 15];
  return s;
}

std::string of_factor(const DimExpr::Factor& factor, bool alone,
                      const std::function<std::string(const std::string&)>& name) {
  const DimExpr::Factor::Composite* c = factor.composite();
  if (!c) return name(factor.text());
  const std::string first = expression(c->first, name);
  if (!c->divisor) return "min(" + first + ", " + expression(c->second, name) + ")";
  const std::string divided =
      (c->first.as_symbol() ? first : "(" + first + ")") + " // " + std::to_string(c->divisor);
  return alone ? divided : "(" + divided + ")";
}

}  // namespace

template <class Real>
static std::string of_real(Real value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  const Real size = std::fabs(value);
  const bool plain = size == 0 || (size >= Real(1e-4) && size < Real(1e16));
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string text(buffer.data(), end.ptr);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string literal(float value) {
  return of_real(value);
}

std::string literal(double value) {
  return of_real(value);
}

std::string literal(int64_t value) {
  return std::to_string(value);
}

std::string literal(std::string_view text) {
  std::string s = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      if (c == '"' || c == '\\') s += '\\';
      s += c < 0x20 || c == 0x7f ? "\\x" + hexadecimal(c, 2) : std::string(1, text[i]);
      ++i;
      continue;
    }
    const auto* at = reinterpret_cast<const llvm::UTF8*>(text.data() + i);
    const auto* from = at;
    const auto* end = reinterpret_cast<const llvm::UTF8*>(text.data() + text.size());
    llvm::UTF32 point = 0;
    if (llvm::convertUTF8Sequence(&at, end, &point, llvm::strictConversion) == llvm::conversionOK) {
      s += point < 0x10000 ? "\\u" + hexadecimal(point, 4) : "\\U" + hexadecimal(point, 8);
      i += static_cast<size_t>(at - from);
    } else {
      s += "\\udc" + hexadecimal(c, 2), ++i;  // as surrogateescape reads a byte that is not UTF-8
    }
  }
  return s + "\"";
}

std::string literal(const AttributeValue& value) {
  if (auto* v = std::get_if<int64_t>(&value)) return literal(*v);
  if (auto* v = std::get_if<F32Bits>(&value)) return literal(v->value());
  if (auto* v = std::get_if<std::string>(&value)) return literal(std::string_view(*v));
  return list_of(std::get<std::vector<int64_t>>(value));
}

std::string join(const std::vector<std::string>& all) {
  std::string s;
  for (const std::string& one : all) s += (&one == all.data() ? "" : ", ") + one;
  return s;
}

static std::vector<std::string> texts(const std::vector<int64_t>& all) {
  std::vector<std::string> s;
  for (int64_t one : all) s.push_back(std::to_string(one));
  return s;
}

std::string list_of(const std::vector<int64_t>& all) {
  return "[" + join(texts(all)) + "]";
}

std::string tuple_of(const std::vector<std::string>& all) {
  return "(" + join(all) + (all.size() == 1 ? ",)" : ")");
}

std::string tuple_of(const std::vector<int64_t>& all) {
  return tuple_of(texts(all));
}

std::string_view dtype(DType type) {
  switch (type) {
    case DType::f32: return "torch.float32";
    case DType::bf16: return "torch.bfloat16";
    case DType::f16: return "torch.float16";
    case DType::f64: return "torch.float64";
    case DType::i64: return "torch.int64";
    case DType::i32: return "torch.int32";
    case DType::i16: return "torch.int16";
    case DType::i8: return "torch.int8";
    case DType::u64: return "torch.uint64";
    case DType::u32: return "torch.uint32";
    case DType::u16: return "torch.uint16";
    case DType::u8: return "torch.uint8";
    case DType::boolean: return "torch.bool";
  }
  return "";
}

std::string expression(const DimExpr& dim, const std::function<std::string(const std::string&)>& name) {
  std::string s;
  for (const auto& [monomial, times] : dim.terms()) {
    if (s.empty())
      s += times < 0 ? "-" : "";
    else
      s += times < 0 ? " - " : " + ";
    const std::string digits = std::to_string(times).substr(times < 0);
    const bool shown = monomial.empty() || digits != "1";
    if (shown) s += digits;
    const bool alone = monomial.size() == 1 && times == 1;
    for (size_t i = 0; i < monomial.size(); ++i)
      s += (i || shown ? " * " : "") + of_factor(monomial[i], alone, name);
  }
  return s.empty() ? "0" : s;
}

bool is_identifier(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_word) && !is_digit(name[0]) &&
         kReserved.find(" " + std::string(name) + " ") == kReserved.npos;
}

Names::Names() {
  for (size_t at = 1, end; (end = kOfModules.find(' ', at)) != kOfModules.npos; at = end + 1)
    taken_.emplace(kOfModules.substr(at, end - at));
}

std::string Names::make(std::string_view name) {
  std::string base;
  for (size_t i = 0; i < name.size(); ++i)
    if (is_word(name[i]))
      base += name[i];
    else if (i == 0 || is_word(name[i - 1]))
      base += '_';
  const size_t first = base.find_first_not_of('_'), last = base.find_last_not_of('_');
  base = first == base.npos ? "x" : base.substr(first, last - first + 1);
  if (!is_identifier(base)) base = "_" + base;
  std::string found = base;
  for (int n = 2; !taken_.insert(found).second; ++n) found = base + "_" + std::to_string(n);
  return found;
}

}  // namespace invar::compiler::python
