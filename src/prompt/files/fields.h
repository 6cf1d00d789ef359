// Fields of tokenizer.json, and the errors about them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/display.h"
#include "base/text/json.h"

namespace invar::prompt {

using Json = json::Value;

inline Error wrong(const std::string& where, const std::string& what) {
  return bad_input(where + ": " + what);
}
inline Error refused(const std::string& where, const std::string& what) {
  return not_covered(where + ": " + what + " is not supported");
}

// The member of an object, or null.
const Json& member(const Json& o, std::string_view name);
// A value within an error: never a whole tree.
std::string brief(const Json& v);
// Members of a type; `where` is the place of the object.
Result<std::string> text_of(const Json& o, const char* name, const std::string& where);
Result<bool> flag_of(const Json& o, const char* name, const std::string& where,
                     std::optional<bool> fallback = {});
Result<size_t> size_of(const Json& o, const char* name, const std::string& where,
                       std::optional<size_t> fallback = {});
Result<uint32_t> character_of(const Json& o, const char* name, const std::string& where);
// A token id; otherwise what is wrong with the value.
Result<int32_t> id_of(const Json& v);
// One of several names.
template <class T, size_t N>
Result<T> choice_of(const Json& o, const char* name, const std::string& where,
                    const std::pair<const char*, T> (&choices)[N]) {
  INVAR_TRY(const std::string value, text_of(o, name, where));
  for (const auto& [known, meaning] : choices)
    if (value == known) return meaning;
  return refused(where, std::string(name) + " " + excerpt(value));
}

// The normalizers, pre-tokenizers or decoders of a tokenizer, and its post-processors, each of
// which may hold tables: those of no known tokenizer are a tenth of these.
constexpr size_t kMostSteps = 256;
inline Status expect_few(size_t steps, const std::string& where) {
  if (steps <= kMostSteps) return {};
  return refused(where, "more than " + std::to_string(kMostSteps) + " steps");
}

// Calls f(element, its place) for every element of an array member of a Sequence. `depth` counts
// the Sequences around it.
constexpr int kDeepest = 8;
template <class F>
Status each(const Json& o, const char* name, const std::string& where, int depth, F&& f) {
  const Json& list = member(o, name);
  if (!list.is_array()) return wrong(where, std::string(name) + " must be an array");
  if (depth >= kDeepest) return wrong(where, "Sequence is nested too deeply");
  for (size_t i = 0; i < list.size(); ++i)
    INVAR_CHECK_OK(f(list.items[i], where + "." + name + "[" + std::to_string(i) + "]"));
  return {};
}

}  // namespace invar::prompt
