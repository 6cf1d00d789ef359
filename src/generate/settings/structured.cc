#include "generate/settings/structured.h"

#include <algorithm>

#include "base/file/file.h"
#include "prompt/chat.h"

namespace invar::generate {
namespace {

// The id of a text that is one token; -1: it is none.
int32_t token_of(const prompt::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, /*add_special_tokens=*/false);
  return ids && ids->size() == 1 ? (*ids)[0] : -1;
}

constexpr std::string_view kStart = "<think>", kEnd = "</think>";  // of reasoning

std::string_view without_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

bool some_template_has(const ModelFolder& model, std::string_view text) {
  return std::ranges::any_of(model.chat_templates.texts,
                             [&](const auto& t) { return t.second.find(text) != std::string::npos; });
}

}  // namespace

Status bind_constraint(const ModelFolder& model, sample::Processors& p) {
  p.constraint.reset();
  if (p.structured_outputs.empty()) return {};
  auto made = model.constraints->of(p.structured_outputs, [&]() -> Result<grammar::Vocabulary> {
    INVAR_TRY(auto tokens, model.tokenizer.token_bytes());
    return grammar::Vocabulary(std::move(tokens));
  });
  if (!made) return Error{made.error().code, "structured_outputs: " + made.error().message};
  p.constraint = *std::move(made);
  return {};
}

Status bind_behind_reasoning(const ModelFolder& model, const std::string& text, sample::Processors& p) {
  if (p.structured_outputs.empty()) return {};
  const std::string_view seen = without_end(text);
  const int32_t start = token_of(model.tokenizer, kStart), end = token_of(model.tokenizer, kEnd);
  const bool reasons = end >= 0 && some_template_has(model, kEnd) && !seen.ends_with(kEnd);
  const bool begun = seen.ends_with(kStart);
  if (!reasons || (!begun && (start < 0 || !some_template_has(model, kStart)))) return {};
  p.structured_outputs = grammar::with_reasoning(p.structured_outputs, begun ? -1 : start, end);
  return bind_constraint(model, p);
}

Status bound_reasoning(const ModelFolder& model, const std::string& text, const std::string& input,
                       int64_t most, int64_t max_new_tokens, sample::Processors& p) {
  const std::string_view seen = without_end(text);
  const bool begun = prompt::begins_in_reasoning(text, input);
  if (!begun && (!some_template_has(model, kEnd) || seen.ends_with(kEnd))) return {};  // it reasons not
  const json::Value form = json::read_or_null(p.structured_outputs);
  if (form.is_object() && !form.contains("think_end")) return {};  // nor here: all of it has to fit
  const int32_t end = token_of(model.tokenizer, kEnd);
  if (end < 0) return not_covered("a budget of reasoning: </think> is not one token of this model");
  // A model that answers at once would have its answer cut by the token that ends reasoning.
  if (!begun || form.contains("think_start"))
    return not_covered(
        "a budget of reasoning: the prompt leaves it to the model to open <think>, and it is not known "
        "whether it does: leave the budget out");
  if (most < max_new_tokens) p.short_circuit_length = most, p.short_circuit_token = end;  // receipt.21
  return {};
}

std::vector<int32_t> stop_tokens_for(const ModelFolder& model, const receipt::Receipt& r) {
  std::vector<int32_t> all = r.stop_token_ids;
  if (!r.ignore_eos) all.insert(all.end(), model.stop_tokens.begin(), model.stop_tokens.end());
  return ascending(std::move(all));
}

Status take_json_options(const std::string& path, bool object, SamplingOptions& o) {
  if (object) o.structured_outputs = "{\"json_object\":true}";
  if (path.empty()) return {};
  constexpr FileKind kSchemaFile{"a JSON schema", uint64_t{1} << 20, true};
  INVAR_TRY(const std::string text, read_file(path, kSchemaFile));
  INVAR_TRY(json::Value schema, json::parse(text, path));
  json::Value asked = json::Value::object;
  asked["json"] = std::move(schema);
  const auto canonical = grammar::canonical(asked);
  if (!canonical) return Error{canonical.error().code, path + ": " + canonical.error().message};
  o.structured_outputs = *canonical;
  return {};
}

CallSyntax call_syntax(const ModelFolder& model) {
  static const std::string kCall = "<tool_call>", kCallEnd = "</tool_call>";
  const int32_t start = token_of(model.tokenizer, kCall), end = token_of(model.tokenizer, kCallEnd);
  const bool spelled =
      (start < 0 || !model.tokenizer.is_special(start)) && (end < 0 || !model.tokenizer.is_special(end));
  if (!some_template_has(model, kCall) || !spelled) return {};
  return {kCall + "\n", "\n" + kCallEnd};
}

}  // namespace invar::generate
