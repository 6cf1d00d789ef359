// Fields of tokenizer.json, see fields.h.
#include "prompt/files/fields.h"

#include "base/text/utf8.h"

namespace invar::prompt {

const Json& member(const Json& o, std::string_view name) {
  return o.get(name);
}

std::string brief(const Json& v) {
  if (v.is_string()) return excerpt(v.text);
  return v.is_structured() ? v.is_array() ? "array" : "object" : excerpt(json::dump(v));
}

Result<std::string> text_of(const Json& o, const char* name, const std::string& where) {
  const Json& v = member(o, name);
  if (!v.is_string()) return wrong(where, std::string(name) + " must be a string");
  return v.text;
}

Result<bool> flag_of(const Json& o, const char* name, const std::string& where,
                     std::optional<bool> fallback) {
  const Json& v = member(o, name);
  if (v.is_null() && fallback) return *fallback;
  if (!v.is_boolean()) return wrong(where, std::string(name) + " must be true or false");
  return v.is_true();
}

Result<size_t> size_of(const Json& o, const char* name, const std::string& where,
                       std::optional<size_t> fallback) {
  const Json& v = member(o, name);
  if (v.is_null() && fallback) return *fallback;
  if (!v.is_unsigned() || v.to_uint64() > INT32_MAX)
    return wrong(where, std::string(name) + " must be an integer from 0 to 2147483647");
  return static_cast<size_t>(v.to_uint64());
}

Result<uint32_t> character_of(const Json& o, const char* name, const std::string& where) {
  INVAR_TRY(const std::string text, text_of(o, name, where));
  size_t at = 0;
  const uint32_t c = text.empty() ? 0 : decode_utf8(text, at);
  if (text.empty() || at != text.size()) return wrong(where, std::string(name) + " must be one character");
  return c;
}

Result<int32_t> id_of(const Json& v) {
  if (!v.is_integer()) return bad_input("a token id must be an integer");
  if (v.is_unsigned() ? v.to_uint64() > INT32_MAX : v.to_int64() < 0)
    return bad_input("the token id " + brief(v) + " is out of range");
  return static_cast<int32_t>(v.to_int64());
}

}  // namespace invar::prompt
