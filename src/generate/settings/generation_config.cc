#include "generate/settings/generation_config.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/text/json.h"
#include "base/text/read_float.h"
#include "generate/onnx/onnx_folder.h"
#include "generate/settings/generation_config_keys.h"
#include "generate/settings/settings_table.h"
#include "sample/sample.h"

namespace invar::generate {
namespace {

using json::Value;

constexpr const char* kElsewhere = "belongs into generation_config.json";

bool is_off(const Value& v, std::string_view off) {
  switch (v.kind) {
    case Value::null: return true;
    case Value::boolean: return v.text == off;
    case Value::array: return off == "[]" && v.items.empty();
    case Value::object: return off == "[]" && v.members.empty();
    case Value::string: return false;
    case Value::number: break;
  }
  double value = 0;
  if (read_float(v.text.data(), v.text.data() + v.text.size(), value).ec != std::errc()) return false;
  return off == "0" ? value == 0 : off == "1" && value == 1;
}

std::string shown(const Value& v) {
  std::string s;
  if (v.kind == Value::null) return "null";
  if (v.kind == Value::string) return json::quote(json::brief(v.text));
  if (v.kind != Value::array && v.kind != Value::object) return json::brief(v.text);
  for (const Value& item : v.items) s += (s.empty() ? "" : ",") + shown(item);
  for (const auto& [key, value] : v.members)
    s += (s.empty() ? "" : ",") + json::quote(json::brief(key)) + ":" + shown(value);
  return json::brief(v.kind == Value::array ? "[" + s + "]" : "{" + s + "}");
}

template <class T>
std::optional<T> whole_number(const Value& v) {
  T value{};
  const char* end = v.text.data() + v.text.size();
  const auto [stop, error] = std::from_chars(v.text.data(), end, value);
  if (v.kind != Value::number || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

class GenerationConfigReader {
 public:
  explicit GenerationConfigReader(std::string path, bool hears = false)
      : path_(std::move(path)), hears_(hears) {}

  // config.json, where transformers looks for the same keys if there is no generation_config.json.
  Status read_substitute(const Value& config, GenerationConfig& d) {
    for (const auto& [key, value] : config.members) {
      key_ = key, value_ = &value;
      if (value.kind == Value::null) continue;
      if (key == "max_new_tokens") return uncovered(kElsewhere);
      for (const UnsupportedKey& k : implemented_keys()) {
        if (k.name != key) continue;
        INVAR_CHECK_OK(off_or_error(k, kElsewhere, d));
      }
      if (const auto status = unsupported(d); status && !*status) return *status;
    }
    return {};
  }

  // `search`: of genai_config.json, which has keys of its own and stop tokens elsewhere.
  Status read(const Value& file, GenerationConfig& d, bool search = false) {
    std::set<std::string_view> seen;
    for (const auto& [key, value] : file.members) {
      if (!seen.insert(key).second) return bad_input(path_ + ": " + quoted(key) + " is given twice");
      key_ = key, value_ = &value;
      if (search && std::ranges::count(harmless_search_keys(), key)) continue;
      if (search && key == "eos_token_id") return uncovered("belongs into the object model");
      INVAR_CHECK_OK(read_key(d));
    }
    d.path = path_;
    sample::Params p;  // ranges; decoding_params() has those of settings that only draws use
    set_given(p.processors, d);
    if (const Status s = sample::check(p); !s) return bad_input(path_ + ": " + s.error().message);
    return {};
  }

 private:
  std::string path_, key_;
  bool hears_ = false;
  const Value* value_ = nullptr;

  static std::string quoted(std::string_view key) {
    const std::string text = json::quote(json::brief(key));
    return "'" + text.substr(1, text.size() - 2) + "'";
  }
  std::string what() const { return path_ + ": " + quoted(key_) + " = " + shown(*value_); }
  Error uncovered(const std::string& why) const {
    return not_covered(what() + " " + why + "; --no-generation-config takes no defaults from this file");
  }

  Status read_key(GenerationConfig& d) {
    if (value_->kind == Value::null) return {};  // transformers: as if it were absent
    if (key_ == "eos_token_id") return {};       // read_stop_tokens
    if (const auto status = setting(d)) return *status;
    if (const auto status = unsupported(d)) return *status;
    if (std::ranges::count(harmless_keys(), key_)) return {};
    if (hears_ && std::ranges::count(speech_keys(), key_)) return {};
    return uncovered("is a key that this version does not know, so it is not covered");
  }

  // Reads the value of a key that is implemented; absent: it is another key.
  std::optional<Status> setting(GenerationConfig& d) const {
    if (key_ == "max_length") return take(d.max_length, 1);
    if (key_ == "min_length") return take(d.min_length, 0);
    std::optional<Status> taken;
    for_each_setting([&](const SettingRow& row, auto member, auto) {
      if constexpr (requires { take(d.*member, row.least); })
        if (row.in_checkpoint && key_ == row.name) taken = take(d.*member, row.least);
    });
    return taken;
  }

  // Checks that the value of a key that is not implemented switches it off. Other keys: nothing.
  std::optional<Status> unsupported(GenerationConfig& d) const {
    if (key_ == "cache_implementation") {
      const bool known = value_->kind == Value::string && std::ranges::count(harmless_caches(), value_->text);
      return known ? Status() : uncovered("is not covered");
    }
    for (const UnsupportedKey& s : unsupported_keys()) {
      if (s.name == key_) return off_or_error(s, "changes which tokens come out and is not covered", d);
    }
    return std::nullopt;
  }
  Status off_or_error(const UnsupportedKey& key, const char* why, GenerationConfig& d) const {
    if (is_off(*value_, key.off)) return {};
    const Error e = uncovered(why);
    if (!key.drawing) return e;
    if (d.drawing) d.drawing = e;
    return {};
  }

  // The value of the key, of the member's type; a whole number of at least `least`.
  Status take(std::optional<bool>& out, int64_t) const {
    if (value_->kind != Value::boolean) return bad_input(what() + " is neither true nor false");
    out = value_->text == "true";
    return {};
  }
  Status take(std::optional<std::vector<std::string>>& out, int64_t) const {
    out.emplace();
    for (const Value& v : value_->kind == Value::array ? value_->items : std::vector<Value>{*value_}) {
      if (v.kind != Value::string || v.text.empty())
        return bad_input(what() + " is no text, nor a list of texts");
      out->push_back(v.text);
    }
    return {};
  }
  static bool ids_of(const Value& list, std::vector<int32_t>& out) {
    for (const Value& id : list.items) {
      const auto number = whole_number<int32_t>(id);
      if (!number || *number < 0) return false;
      out.push_back(*number);
    }
    return list.kind == Value::array;
  }
  Status take(std::optional<std::vector<int32_t>>& out, int64_t) const {
    Value list = *value_;
    const bool or_one = key_ == "forced_eos_token_id";
    if (or_one && list.kind == Value::number) list.kind = Value::array, list.items = {*value_};
    if (!ids_of(list, out.emplace())) return bad_input(what() + " is no list of token ids");
    return {};
  }
  Status take(std::optional<std::vector<std::vector<int32_t>>>& out, int64_t) const {
    out.emplace();
    for (const Value& word : value_->items)
      if (!ids_of(word, out->emplace_back()) || word.items.empty())
        return bad_input(what() + " is no list of lists of token ids");
    return value_->kind == Value::array ? Status() : bad_input(what() + " is no list of lists of token ids");
  }
  template <std::integral T>
  Status take(std::optional<T>& out, int64_t least) const {
    constexpr T most = std::numeric_limits<int32_t>::max();
    const auto value = whole_number<T>(*value_);
    if (!value || *value < least || *value > most)
      return bad_input(what() + " is not a whole number from " + std::to_string(least) + " to " +
                       std::to_string(most));
    out = *value;
    return {};
  }
  Status take(std::optional<float>& out, int64_t) const {
    float value = 0;
    const std::string& text = value_->text;
    if (value_->kind != Value::number) return bad_input(what() + " is not a number");
    if (read_float(text.data(), text.data() + text.size(), value).ec != std::errc())
      return bad_input(what() + " is too large or too small for a binary32 number");
    out = value;
    return {};
  }
};

// An absent file is an empty object.
Result<Value> read_object(const std::string& path) {
  Value file;
  file.kind = Value::object;
  if (!exists(path)) return file;
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(file, json::parse(text, path));
  if (file.kind != Value::object) return bad_input(path + ": not a JSON object");
  return file;
}

const Value* member(const Value& object, std::string_view name) {
  const auto found = std::ranges::find(object.members, name, [](const auto& m) { return m.first; });
  return found == object.members.end() ? nullptr : &found->second;
}

// `search` of genai_config.json, where it is the settings of an ONNX model (onnx.32).
Status read_search(const std::string& folder, GenerationConfig& d) {
  const std::string path = folder + "/genai_config.json";
  INVAR_TRY(const std::string model, onnx_model_in(folder));
  if (model.empty()) return {};
  INVAR_TRY(const Value file, read_object(path));
  const Value* search = member(file, "search");
  if (!search || search->kind == Value::null) return {};
  if (search->kind != Value::object) return bad_input(path + ": 'search' is not a JSON object");
  INVAR_CHECK_OK(GenerationConfigReader(path + ": search").read(*search, d, /*search=*/true));
  // The builder writes the context as the greatest length of every model.
  const Value* settings = member(file, "model");
  const Value* context = settings ? member(*settings, "context_length") : nullptr;
  const auto most = context ? whole_number<int64_t>(*context) : std::nullopt;
  if (most && d.max_length && *d.max_length >= *most) d.max_length.reset();
  return {};
}

std::string path_in(const std::string& folder) {
  return folder + "/generation_config.json";
}

}  // namespace

Result<GenerationConfig> read_generation_config(const std::string& folder, bool hears) {
  GenerationConfig d;
  if (!exists(path_in(folder))) {
    const std::string path = folder + "/config.json";
    INVAR_TRY(const Value config, read_object(path));
    INVAR_CHECK_OK(GenerationConfigReader(path).read_substitute(config, d));
    INVAR_CHECK_OK(read_search(folder, d));
    return d;
  }
  INVAR_TRY(const Value file, read_object(path_in(folder)));
  INVAR_CHECK_OK(GenerationConfigReader(path_in(folder), hears).read(file, d));
  return d;
}

Result<std::optional<std::vector<int32_t>>> read_stop_tokens(const std::string& folder) {
  INVAR_TRY(const Value file, read_object(path_in(folder)));
  std::optional<std::vector<int32_t>> ids;
  for (const auto& [key, value] : file.members) {
    if (key != "eos_token_id" || value.kind == Value::null) continue;
    ids.emplace();
    for (const Value& id : value.kind == Value::array ? value.items : std::vector<Value>{value}) {
      const auto number = whole_number<int32_t>(id);
      if (!number || *number < 0)
        return bad_input(path_in(folder) + ": 'eos_token_id' = " + shown(value) +
                         " is no token id, nor a list of them");
      ids->push_back(*number);
    }
  }
  return ids;
}

}  // namespace invar::generate
