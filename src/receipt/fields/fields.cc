// The table of a receipt's fields, see fields.h.
#include "receipt/fields/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/text/read_float.h"
#include "receipt/fields/members.h"

namespace invar::receipt {
namespace {

template <auto M>
auto& of(Receipt& r) {
  return r.*M;
}
template <auto M>
auto& sampling(Receipt& r) {
  return r.sampling.*M;
}
template <auto M>
auto& processor(Receipt& r) {
  return r.sampling.processors.*M;
}

using R = Receipt;
using P = sample::Params;
using S = sample::Processors;
constexpr bool kAlways = false, kOptional = true, kSalted = true;
// An optional field is a row here, a member of Receipt whose default value has no effect, and a
// line of docs/reference/{receipt.py,receipt.schema.json} and spec/receipt.md.
const Field kFields[] = {
    {"model", "name", &of<&R::model_name>},
    {"model", "revision", &of<&R::revision>},
    {"model", "weights", &of<&R::weights>},
    {"model", "config", &of<&R::config>},
    {"model", "tokenizer", &of<&R::tokenizer>},
    {"model", "chat_template", &of<&R::chat_template>},
    {"model", "tensors", &of<&R::tensors>},
    {"model", "text_of", &of<&R::text_of>, 2, kOptional},
    {"model", "adapter_name", &of<&R::adapter_name>, 2, kOptional},
    {"model", "adapter", &of<&R::adapter>, 2, kOptional},
    {"program", "recipe", &of<&R::recipe>, 2},
    {"program", "digest", &of<&R::program>},
    {"program", "numerics", &of<&R::numerics>},
    {"program", "profile", &of<&R::profile>, 2},
    {"program", "operation_set", &of<&R::operation_set>},
    {"program", "unicode", &of<&R::unicode>},
    {"input", "prompt", &of<&R::prompt>, 1, kAlways, kSalted},
    {"input", "tokens", &of<&R::prompt_tokens>, 1, kAlways, kSalted},
    {"input", "max_new_tokens", &of<&R::max_new_tokens>},
    {"input", "stop_tokens", &of<&R::stop_tokens>},
    {"input", "do_sample", &sampling<&P::do_sample>},
    {"input", "temperature", &sampling<&P::temperature>},
    {"input", "top_k", &sampling<&P::top_k>},
    {"input", "top_p", &sampling<&P::top_p>},
    {"input", "seed", &sampling<&P::seed>},
    {"input", "min_p", &sampling<&P::min_p>, 2, kOptional},
    {"input", "epsilon_cutoff", &sampling<&P::epsilon_cutoff>, 2, kOptional},
    {"input", "stream", &sampling<&P::stream>, 2, kOptional},
    {"input", "repetition_penalty", &processor<&S::repetition_penalty>, 2, kOptional},
    {"input", "logit_bias", &processor<&S::logit_bias>, 2, kOptional},
    {"input", "frequency_penalty", &processor<&S::frequency_penalty>, 2, kOptional},
    {"input", "presence_penalty", &processor<&S::presence_penalty>, 2, kOptional},
    {"input", "no_repeat_ngram_size", &processor<&S::no_repeat_ngram_size>, 2, kOptional},
    {"input", "bad_words_ids", &processor<&S::bad_words_ids>, 2, kOptional},
    {"input", "min_new_tokens", &processor<&S::min_new_tokens>, 2, kOptional},
    {"input", "forced_bos_token_id", &processor<&S::forced_bos_token_id>, 2, kOptional},
    {"input", "forced_eos_token_id", &processor<&S::forced_eos_token_id>, 2, kOptional},
    {"input", "remove_invalid_values", &processor<&S::remove_invalid_values>, 2, kOptional},
    {"input", "suppress_tokens", &processor<&S::suppress_tokens>, 2, kOptional},
    {"input", "begin_suppress_tokens", &processor<&S::begin_suppress_tokens>, 2, kOptional},
    {"input", "short_circuit_length", &processor<&S::short_circuit_length>, 2, kOptional},
    {"input", "short_circuit_token", &processor<&S::short_circuit_token>, 2, kOptional},
    {"input", "allowed_token_ids", &processor<&S::allowed_token_ids>, 2, kOptional},
    {"input", "timestamp_begin", &processor<&S::timestamp_begin>, 2, kOptional},
    {"input", "max_initial_timestamp_index", &processor<&S::max_initial_timestamp_index>, 2, kOptional},
    {"input", "structured_outputs", &processor<&S::structured_outputs>, 2, kOptional},
    {"input", "stop_token_ids", &of<&R::stop_token_ids>, 2, kOptional},
    {"input", "ignore_eos", &of<&R::ignore_eos>, 2, kOptional},
    {"input", "stop_strings", &of<&R::stop_strings>, 2, kOptional},
    {"input", "stop_in_answer", &of<&R::stop_in_answer>, 2, kOptional},
    {"input", "chat", &of<&R::chat>, 2, kOptional, kSalted},
    {"input", "decoder_tokens", &of<&R::decoder_tokens>, 2, kOptional},
    {"input", "audio", &of<&R::audio>, 2, kOptional, kSalted},
    {"input", "audio_start", &of<&R::audio_start>, 2, kOptional},
    {"input", "previous", &of<&R::previous>, 2, kOptional},
    {"input", "salt", &of<&R::salt>, 2, kOptional},
    {"output", "text", &of<&R::text>},
    {"output", "finish_reason", &of<&R::finish_reason>},
    {"output", "tokens", &of<&R::tokens>},
    {"output", "logits", &of<&R::logits>, 1, kAlways, kSalted},
};
const Field kTensorFields[] = {
    {"model", "name", &of<&R::model_name>},       {"model", "weights", &of<&R::weights>},
    {"model", "tensors", &of<&R::tensors>},       {"program", "recipe", &of<&R::recipe>},
    {"program", "digest", &of<&R::program>},      {"program", "numerics", &of<&R::numerics>},
    {"program", "profile", &of<&R::profile>},     {"program", "operation_set", &of<&R::operation_set>},
    {"input", "tensors", &of<&R::input_tensors>}, {"output", "tensors", &of<&R::output_tensors>},
};

// The shortest decimal text that reads back as the same number.
template <class T>
std::string decimal(T x) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr};
}

// ---- writing
std::string to_json(const std::string& v, Style) {
  return json::quote(v);
}
std::string to_json(const Digest& v, Style) {
  return '"' + to_hex(v) + '"';
}
std::string to_json(bool v, Style) {
  return v ? "true" : "false";
}
std::string to_json(int32_t v, Style) {
  return decimal(v);
}
std::string to_json(int64_t v, Style) {
  return decimal(v);
}
// receipt.3: strings, because common readers of JSON keep numbers as binary64.
std::string to_json(uint64_t v, Style) {
  return '"' + decimal(v) + '"';
}
std::string to_json(float v, Style) {
  return '"' + decimal(v) + '"';
}

std::string to_json(const TensorDigest& v, Style);
std::string to_json(const sample::LogitBias& v, Style);
std::string to_json(const std::vector<int32_t>& v, Style);

template <class T>
std::string list(const std::vector<T>& v, Style s, std::string_view between, std::string_view open = "",
                 std::string_view close = "") {
  std::string out = "[";
  if (s == Style::pretty && !v.empty()) out += open;
  for (size_t i = 0; i < v.size(); ++i) {
    if (i > 0) out += s == Style::pretty ? between : std::string_view(",");
    out += to_json(v[i], s);
  }
  if (s == Style::pretty && !v.empty()) out += close;
  return out + "]";
}
std::string to_json(const TensorDigest& t, Style s) {
  std::string_view sep = s == Style::pretty ? ", " : ",", colon = s == Style::pretty ? ": " : ":";
  auto member = [&](std::string_view key, const std::string& value) {
    return json::quote(key).append(colon).append(value);
  };
  std::string out = "{" + member("name", json::quote(t.name));
  out.append(sep).append(member("dtype", json::quote(t.dtype)));
  out.append(sep).append(member("shape", list(t.shape, s, ", ")));
  return out.append(sep).append(member("sha256", to_json(t.sha256, s))) + "}";
}
std::string to_json(const sample::LogitBias& v, Style s) {
  return "[" + decimal(v.token) + (s == Style::pretty ? ", " : ",") + to_json(v.bias, s) + "]";
}
std::string to_json(const std::vector<int32_t>& v, Style s) {
  return list(v, s, ", ");
}
std::string to_json(const std::vector<sample::LogitBias>& v, Style s) {
  return list(v, s, ", ");
}
std::string to_json(const std::vector<std::vector<int32_t>>& v, Style s) {
  return list(v, s, ", ");
}
std::string to_json(const std::vector<std::string>& v, Style s) {
  return list(v, s, ", ");
}
std::string to_json(const std::vector<Digest>& v, Style s) {
  return list(v, s, ",\n      ", "\n      ", "\n    ");
}
std::string to_json(const std::vector<TensorDigest>& v, Style s) {
  return list(v, s, ",\n      ", "\n      ", "\n    ");
}

// ---- reading
using Findings = std::vector<Finding>;
using json::Value;

std::string shown(const Value& v) {
  if (v.kind == Value::string) return json::quote(json::brief(v.text));
  return v.text.empty() ? std::string(json::name_of(v.kind)) : json::brief(v.text);
}
bool wrong(const std::string& path, std::string expected, const Value& v, Findings& f) {
  f.push_back({path, std::move(expected), shown(v)});
  return false;
}
bool typed(const Value& v, Value::Kind kind, const std::string& path, Findings& f) {
  return v.kind == kind || wrong(path, std::string(json::name_of(kind)), v, f);
}
// A number in its canonical spelling.
template <class T>
bool number(const std::string& text, T& out) {
  const char *begin = text.data(), *stop = begin + text.size();
  std::from_chars_result read;
  if constexpr (std::is_floating_point_v<T>)
    read = read_float(begin, stop, out);
  else
    read = std::from_chars(begin, stop, out);
  const auto [end, error] = read;
  return error == std::errc() && end == text.data() + text.size() && decimal(out) == text;
}

bool from_json(const Value& v, std::string& out, const std::string& path, Findings& f) {
  return typed(v, Value::string, path, f) && (out = v.text, true);
}
bool from_json(const Value& v, Digest& out, const std::string& path, Findings& f) {
  auto d = v.kind == Value::string ? digest_from_hex(v.text) : std::nullopt;
  return d ? (out = *d, true) : wrong(path, "64 lower-case hexadecimal digits in quotes", v, f);
}
bool from_json(const Value& v, bool& out, const std::string& path, Findings& f) {
  return typed(v, Value::boolean, path, f) && (out = v.text == "true", true);
}
template <class T>
requires(std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>) bool from_json(const Value& v, T& out,
                                                                                  const std::string& path,
                                                                                  Findings& f) {
  return (v.kind == Value::number && number(v.text, out)) ||
         wrong(path, "an integer of " + std::to_string(8 * sizeof(T)) + " bits", v, f);
}
bool from_json(const Value& v, uint64_t& out, const std::string& path, Findings& f) {
  return (v.kind == Value::string && number(v.text, out)) ||
         wrong(path, "an unsigned integer of 64 bits in quotes", v, f);
}
bool from_json(const Value& v, float& out, const std::string& path, Findings& f) {
  return (v.kind == Value::string && number(v.text, out) && std::isfinite(out)) ||
         wrong(path, "the shortest decimal text of a binary32 number, in quotes", v, f);
}
bool from_json(const Value& v, sample::LogitBias& out, const std::string& path, Findings& f) {
  if (!typed(v, Value::array, path, f)) return false;
  if (v.items.size() != 2) return wrong(path, "a list of a token id and a number in quotes", v, f);
  const bool token = from_json(v.items[0], out.token, path + "[0]", f);
  return from_json(v.items[1], out.bias, path + "[1]", f) && token;
}
bool from_json(const Value& v, TensorDigest& out, const std::string& path, Findings& f);
template <class T>
bool from_json(const Value& v, std::vector<T>& out, const std::string& path, Findings& f) {
  if (!typed(v, Value::array, path, f)) return false;
  bool good = true;
  for (size_t i = 0; i < v.items.size() && (good || !full(f)); ++i)
    good &= from_json(v.items[i], out.emplace_back(), path + "[" + std::to_string(i) + "]", f);
  return good;
}
bool from_json(const Value& v, TensorDigest& out, const std::string& path, Findings& f) {
  static constexpr std::string_view kKeys[] = {"name", "dtype", "shape", "sha256"};
  if (!typed(v, Value::object, path, f)) return false;
  bool good = true, seen[4] = {};
  for (const auto& [key, member] : v.members) {
    if (full(f)) return false;
    size_t k = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
    std::string at = path + "." + key;
    if (k == 4 || seen[k]) {
      f.push_back(
          {at, k == 4 ? "no such member" : "only one", k == 4 ? "an unknown member" : "a second one"});
      good = false;
      continue;
    }
    seen[k] = true;
    good &= k == 0   ? from_json(member, out.name, at, f)
            : k == 1 ? from_json(member, out.dtype, at, f)
            : k == 2 ? from_json(member, out.shape, at, f)
                     : from_json(member, out.sha256, at, f);
  }
  for (size_t k = 0; k < 4; ++k)
    if (!seen[k]) f.push_back({path + "." + std::string(kKeys[k]), "a value", "nothing"}), good = false;
  return good;
}

}  // namespace

std::string schema_of(int format) {
  if (format == kTensorFormat) return "invar-tensor-receipt 1";
  return "invar-receipt " + std::to_string(format);
}

int format_of(std::string_view schema) {
  for (int format : {1, 2, kTensorFormat})
    if (schema == schema_of(format)) return format;
  return 0;
}

std::vector<Field> fields(int format) {
  if (format == kTensorFormat) return {std::begin(kTensorFields), std::end(kTensorFields)};
  std::vector<Field> all;
  std::copy_if(std::begin(kFields), std::end(kFields), std::back_inserter(all),
               [&](const Field& f) { return f.since <= format; });
  return all;
}

bool stands(const Field& field, const Receipt& r) {
  static const Receipt neutral{};
  return !field.optional || r.withheld.contains(field.path()) ||
         write(field, r, Style::compact) != write(field, neutral, Style::compact);
}

std::vector<Field> fields(const Receipt& r) {
  std::vector<Field> standing = fields(r.format);
  std::erase_if(standing, [&](const Field& f) { return !stands(f, r); });
  return standing;
}

std::string write(const Field& field, const Receipt& r, Style style) {
  // The accessors return mutable references; nothing is written through them here.
  return std::visit([&](auto ref) { return to_json(std::as_const(ref(const_cast<Receipt&>(r))), style); },
                    field.ref);
}

void clear(const Field& field, Receipt& r) {
  std::visit([&](auto ref) { ref(r) = {}; }, field.ref);
}

bool may_be_withheld(const Field& field) {
  return field.salted || field.path() == kSaltPath;
}

bool read(const Field& field, const Value& v, Receipt& r, Findings& findings) {
  return std::visit([&](auto ref) { return from_json(v, ref(r), field.path(), findings); }, field.ref);
}

}  // namespace invar::receipt
