#include "serve/protocol/call.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/text/display.h"
#include "base/text/read_float.h"
#include "grammar/grammar.h"
#include "serve/protocol/forms/translate.h"

namespace invar::serve {
namespace {

using json::Value;

enum class Type { boolean, integer, number, text, texts, ids, list, object, any };

void assign(bool& to, const Value& v) {
  to = v.is_true();
}
void assign(std::optional<bool>& to, const Value& v) {
  to = v.is_true();
}
void assign(int64_t& to, const Value& v) {
  to = v.to_int64();
}
void assign(std::string& to, const Value& v) {
  to = v.text;
}
void assign(Value& to, const Value& v) {
  to = v;
}
void assign(std::optional<int32_t>& to, const Value& v) {
  to = static_cast<int32_t>(v.to_int64());
}
void assign(std::optional<int64_t>& to, const Value& v) {
  to = v.to_int64();
}
void assign(std::optional<uint64_t>& to, const Value& v) {
  to = v.to_uint64();
}
// Rounded once, as a receipt's decimal is.
float float_of(const Value& v) {
  float x = 0;
  const auto read = read_float(v.text.data(), v.text.data() + v.text.size(), x);
  return read.ec == std::errc() ? x : static_cast<float>(v.to_double());  // too large, or vanishes
}
void assign(std::optional<float>& to, const Value& v) {
  to = float_of(v);
}
void assign(std::optional<std::vector<int32_t>>& to, const Value& v) {
  to.emplace();
  for (const Value& one : v.items) to->push_back(static_cast<int32_t>(one.to_int64()));
}
void assign(std::optional<std::vector<std::string>>& to, const Value& v) {
  to.emplace();
  if (v.is_string()) to->push_back(v.text);
  for (const Value& one : v.items) to->push_back(one.text);
}

struct Field {
  const char* name;
  int of, needed;  // endpoints
  Type type;
  bool ranged;
  double least, most;
  const char* only;     // JSON: a list of the values that change nothing; "": all are taken
  const char* choices;  // JSON: a list of the values that there are; "": all
  void (*take)(Call&, const Value&);
};

constexpr Field kFields[] = {
#include "options/request_fields.inc"
};

const char* words_of(Type type) {
  switch (type) {
    case Type::boolean: return "true or false";
    case Type::integer: return "a whole number";
    case Type::number: return "a number";
    case Type::text: return "a text";
    case Type::texts: return "a text or a list of texts";
    case Type::ids: return "a list of token ids";
    case Type::list: return "a list";
    case Type::object: return "an object";
    case Type::any: return "a value";
  }
  return "";
}

bool is_of(Type type, const Value& v) {
  const auto all_strings = [](const Value& list) {
    for (const Value& one : list.items)
      if (!one.is_string()) return false;
    return true;
  };
  const auto all_ids = [](const Value& list) {
    for (const Value& one : list.items)
      if (!one.is_integer() || one.to_double() < 0 || one.to_double() > 2147483647) return false;
    return true;
  };
  switch (type) {
    case Type::boolean: return v.is_boolean();
    case Type::integer: return v.is_integer();
    case Type::number: return v.is_number();
    case Type::text: return v.is_string();
    case Type::texts: return v.is_string() || (v.is_array() && all_strings(v));
    case Type::ids: return v.is_array() && all_ids(v);
    case Type::list: return v.is_array();
    case Type::object: return v.is_object();
    case Type::any: return true;
  }
  return false;
}

const Field* field_of(std::string_view name, Endpoint endpoint) {
  for (const Field& one : kFields)
    if (one.name == name && (one.of & endpoint)) return &one;
  return nullptr;
}

// A bound as people write it; the greatest there is is 2^64 - 1.
std::string bound_of(const Field& field, double bound) {
  if (field.type != Type::integer) return json::spelled(bound);
  if (bound >= 0x1p64) return json::spelled(UINT64_MAX);
  return json::spelled(static_cast<int64_t>(bound));
}

std::optional<Problem> take(const Field& field, const Value& v, Call& call) {
  const std::string name = field.name;
  std::string range;
  if (field.ranged) range = " from " + bound_of(field, field.least) + " to " + bound_of(field, field.most);
  if (!is_of(field.type, v) ||
      (field.ranged && !(v.to_double() >= field.least && v.to_double() <= field.most)))
    return Problem{400, name + ": " + words_of(field.type) + range + " is needed, not " + shown(v), name};
  if (*field.only) {
    const Value same = json::read_or_null(field.only);
    for (const Value& one : same.items)
      if (one == v) return std::nullopt;
    return Problem{
        400,
        name + ": " +
            (same.empty() ? "is not supported yet: leave it out"
                          : "only " + json::compact(same.items[0]) + " is supported yet, not " + shown(v)),
        name, "unsupported_parameter"};
  }
  if (*field.choices) {
    const Value choices = json::read_or_null(field.choices);
    if (std::ranges::count(choices.items, v) == 0)
      return Problem{400, name + ": one of " + json::compact(choices) + " is needed, not " + shown(v), name};
  }
  if (field.take) field.take(call, v);
  return std::nullopt;
}

std::optional<Problem> take_logit_bias(Call& call) {
  auto& biases = call.sampling.logit_bias;
  for (const auto& [key, value] : call.logit_bias.members) {
    const Value id = json::read_or_null(key);
    if (!id.is_unsigned() || id.text != key || id.to_double() > 2147483647 || !value.is_number())
      return Problem{
          400, "logit_bias: ids of tokens and numbers are needed, not " + shown(key) + ": " + shown(value),
          "logit_bias"};
    if (!biases) biases.emplace();
    biases->push_back({static_cast<int32_t>(id.to_int64()), float_of(value)});
  }
  return std::nullopt;
}

// Which log-probabilities are asked for.
std::optional<Problem> take_logprobs(Call& call) {
  if (call.top_logprobs.value_or(0) > 0 && !call.chat_logprobs)
    return Problem{400, "top_logprobs: needs logprobs: set it to true", "top_logprobs"};
  if (call.chat_logprobs) call.sampling.logprobs = call.top_logprobs.value_or(0);
  if (call.echo && call.sampling.logprobs && call.stream)
    return Problem{400, "logprobs: with echo they do not come as a stream: leave one of the three out",
                   "logprobs"};
  if (call.sampling.max_new_tokens != 0) return std::nullopt;
  if (!call.echo) return Problem{400, "max_tokens: 0 is for echo alone: take 1 or more", "max_tokens"};
  call.only_echo = true;
  call.sampling.max_new_tokens = 1;
  return std::nullopt;
}

// The form of the answer, as grammar.2 has it.
std::optional<Problem> take_format(Call& call) {
  const char* param = "response_format";
  const Value &format = call.response_format, &asked = call.structured_outputs;
  Value made = Value::object;
  const std::string& type = format.get("type").text;
  if (!format.is_null() && type != "text") {
    const Value& schema = format.get("json_schema");
    for (const auto& [name, value] : format.members)
      if (name != "type" && (name != "json_schema" || type != "json_schema") &&
          (name != "schema" || type != "json_object"))
        return Problem{400, "response_format." + name + ": is not known: leave it out", param};
    for (const auto& [name, value] : schema.members)
      if (name != "name" && name != "description" && name != "schema" && name != "strict")
        return Problem{400, "response_format.json_schema." + name + ": is not known: leave it out", param};
    if (type == "json_object" && format.contains("schema"))  // as llama.cpp spells it
      made["json"] = format.get("schema");
    else if (type == "json_object")
      made["json_object"] = true;
    else if (type != "json_schema")
      return Problem{400,
                     "response_format.type: text, json_object or json_schema is needed, not " +
                         shown(format.get("type")),
                     param};
    else if (!schema.contains("schema"))
      return Problem{400, "response_format.json_schema.schema: is needed", param};
    else
      made["json"] = schema.get("schema");
  }
  if (!asked.is_null()) {
    if (!made.empty())
      return Problem{400, "structured_outputs: response_format says a form, too: leave one of them out",
                     "structured_outputs"};
    param = "structured_outputs";
    for (const auto& [name, value] : asked.members) {
      if (name != "json" && name != "json_object" && name != "regex" && name != "choice")
        return Problem{
            400, "structured_outputs." + name + ": is not supported: take json, json_object, regex or choice",
            param, "unsupported_parameter"};
      if (value.is_null() || (name == "json_object" && !value.is_true())) continue;
      made[name] = value;
      if (name == "json" && value.is_string()) {  // a schema as a text
        auto schema = json::parse(value.text, "structured_outputs.json");
        if (!schema) return Problem{400, schema.error().message, param};
        made[name] = *std::move(schema);
      }
    }
  }
  if (made.empty()) return std::nullopt;
  const auto text = grammar::canonical(made);
  if (!text) return Problem{400, std::string(param) + ": " + text.error().message, param};
  if (!call.forced_tools().empty())
    return Problem{400, std::string(param) + ": tool_choice asks for a call instead: leave one of them out",
                   param};
  call.sampling.structured_outputs = *text;
  return std::nullopt;
}

// Which tools may be called, and whether one has to be.
std::optional<Problem> take_tool_choice(const Call& call) {
  const Value& choice = call.tool_choice;
  if (choice.is_null() || choice.text == "auto" || choice.text == "none") return std::nullopt;
  const auto wrong = [](const std::string& why) {
    return Problem{400, "tool_choice: " + why, "tool_choice"};
  };
  const Value& name = choice.get("function").get("name");
  if (choice.text != "required" &&
      (!choice.is_object() || choice.get("type").text != "function" || !name.is_string()))
    return wrong(
        "auto, none, required or {\"type\": \"function\", \"function\": {\"name\": NAME}} is needed, not " +
        shown(choice));
  if (call.tools.empty()) return wrong("a call is asked for, and tools has no function");
  if (call.forced_tools().empty()) return wrong("tools has no function " + shown(name));
  for (const Value& tool : call.forced_tools().items)
    if (!tool.get("name").is_string()) return Problem{400, "tools: each has a function with a name", "tools"};
  return std::nullopt;
}

std::optional<Problem> check_granularities(const Value& list) {
  for (const Value& one : list.items)
    if (one != "segment")
      return Problem{400, "timestamp_granularities[]: only segment is supported, not " + shown(one),
                     "timestamp_granularities[]", "unsupported_parameter"};
  return std::nullopt;
}

std::optional<Problem> check_texts(const std::optional<std::vector<std::string>>& texts,
                                   const std::string& name) {
  size_t bytes = 0;
  for (const std::string& text : texts.value_or(std::vector<std::string>())) bytes += text.size();
  if (bytes <= kMostTextBytes && (!texts || texts->size() <= kMostTexts)) return std::nullopt;
  return Problem{400,
                 name + ": at most " + std::to_string(kMostTexts) + " texts of " +
                     std::to_string(kMostTextBytes) + " bytes together, not " +
                     std::to_string(texts->size()) + " of " + std::to_string(bytes),
                 name};
}

// What OpenAI's names mean that Invar spells otherwise.
std::optional<Problem> settle(Call& call) {
  generate::SamplingOptions& s = call.sampling;
  if (s.top_k && *s.top_k < 0) s.top_k = 0;
  if (s.stop_strings && s.stop_strings->empty()) s.stop_strings.reset();
  if (s.stop_strings) s.stop_in_answer = true;
  if (auto problem = check_granularities(call.granularities)) return problem;
  if (auto problem = check_texts(s.stop_strings, call.endpoint == kMessages ? "stop_sequences" : "stop"))
    return problem;
  if (auto problem = check_texts(s.bad_words, "bad_words")) return problem;
  if (auto problem = take_logit_bias(call)) return problem;
  if (auto problem = take_logprobs(call)) return problem;
  if (s.temperature && *s.temperature == 0) {  // nothing is drawn, whatever shapes it
    s.temperature.reset(), s.top_k.reset(), s.top_p.reset(), s.min_p.reset();
    s.do_sample = false;
  }
  for (const auto& [name, value] : call.stream_options.members) {
    if (name != "include_usage" && name != "include_obfuscation" && name != "continuous_usage_stats")
      return Problem{400, "stream_options." + name + ": no option of a stream: leave it out",
                     "stream_options"};
    if (!value.is_boolean() && !value.is_null())
      return Problem{400, "stream_options." + name + ": true or false is needed, not " + shown(value),
                     "stream_options"};
  }
  if (!call.stream_options.is_null() && !call.stream)
    return Problem{400, "stream_options: is for streams: set stream to true", "stream_options"};
  if (auto problem = take_tool_choice(call)) return problem;
  return take_format(call);
}

}  // namespace

std::string shown(const Value& v) {
  const std::string text = json::dump(v, {.ascii = true});
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

json::Value Call::forced_tools() const {
  Value forced = Value::array;
  const bool any = tool_choice.text == "required";
  const Value& name = tool_choice.get("function").get("name");
  if (!any && !tool_choice.is_object()) return forced;
  for (const Value& tool : tools.items) {
    const Value& function = tool.get("function");
    if (!any && function.get("name") != name) continue;
    Value taken = {{"name", function.get("name")}};
    if (const Value* parameters = function.find("parameters"); parameters && !parameters->is_null())
      taken["parameters"] = *parameters;
    forced.add(std::move(taken));
  }
  return forced;
}

json::Value json_of(const Problem& p) {
  const char* type = p.status >= 500   ? "server_error"
                     : p.status == 401 ? "authentication_error"
                     : p.status == 429 ? "rate_limit_error"
                                       : "invalid_request_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? Value() : Value(text); };
  return {{"error",
           {{"message", excerpt(p.message, kLongestMessage)},
            {"type", type},
            {"param", or_null(excerpt(p.param))},
            {"code", or_null(p.code)}}}};
}

Problem problem_of(const Error& e) {
  if (e.code == Code::not_covered) return {400, e.message, "", "not_covered"};
  if (e.code == Code::bad_input) return {400, e.message};
  return {500, e.message};
}

Outcome<Call> read_call(std::string_view body, Endpoint endpoint) {
  auto parsed = json::parse(body, "the body");
  if (!parsed) return Problem{400, parsed.error().message};
  if (!parsed->is_object()) return Problem{400, "the body: an object is needed"};
  return read_members(*std::move(parsed), endpoint);
}

Outcome<Call> read_members(Value given, Endpoint endpoint) {
  if (const std::string* twice = json::repeated_name(given))
    return Problem{400, "the body: an object has the member '" + excerpt(*twice) + "' twice"};
  Call call;
  call.endpoint = endpoint;
  call.chat = (endpoint & (kChat | kMessages | kTokens | kResponses | kTokenize)) != 0;
  for (const auto& [name, value] : given.members) {
    if (value.is_null()) continue;
    const Field* const field = field_of(name, endpoint);
    if (!field)
      return Problem{400, name + ": no member of a request that this server knows: leave it out", name,
                     "unknown_parameter"};
    if (auto problem = take(*field, value, call)) return *problem;
  }
  // One limit under two names: no order of members decides between them.
  const Value &limit = given.get("max_tokens"), &other = given.get("max_completion_tokens");
  if (endpoint == kChat && !limit.is_null() && !other.is_null() && limit != other)
    return Problem{400, "max_completion_tokens: max_tokens says " + shown(limit) + ": leave one of them out",
                   "max_completion_tokens"};
  for (const Field& field : kFields)
    if ((field.needed & endpoint) && given.get(field.name).is_null())
      return Problem{400, std::string(field.name) + ": " + words_of(field.type) + " is needed", field.name};
  if (endpoint & (kMessages | kTokens))
    if (auto problem = take_messages(call)) return *problem;
  if (endpoint == kResponses)
    if (auto problem = take_responses(call)) return *problem;
  if (auto problem = settle(call)) return *problem;
  return call;
}

void add_form_member(Value& members, const std::string& name, std::string text, Endpoint endpoint) {
  const Field* const field = field_of(name, endpoint);
  const Type type = field ? field->type : Type::text;
  Value value = type == Type::text ? Value() : json::read_or_null(text);
  const bool scalar = value.is_boolean() || value.is_number();
  if (!scalar || type == Type::list) value = std::move(text);
  Value* const list = type == Type::list ? members.find(name) : nullptr;
  if (list) {
    list->add(std::move(value));
    return;
  }
  if (type == Type::list) value = json::list({std::move(value)});
  members.members.push_back({name, std::move(value)});
}

}  // namespace invar::serve
