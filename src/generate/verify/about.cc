// The content of a receipt in a few short lines. Compiled for the browser, too.
#include "base/text/display.h"
#include "base/text/json.h"
#include "generate/verify/verify.h"

namespace invar::generate {
namespace {

using json::Value;
using Lines = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kShown = 48;        // bytes of a text
constexpr size_t kTensorsShown = 3;  // names of tensors

// The text on one line in quotes, without its middle where it is long.
std::string quoted(const std::string& text) {
  return '"' + excerpt(text, kShown) + '"';
}

std::string counted(size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string listed(const std::vector<receipt::TensorDigest>& tensors) {
  std::string list;
  for (size_t i = 0; i < tensors.size() && i < kTensorsShown; ++i) {
    std::string shape;
    for (const int64_t d : tensors[i].shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
    list += (list.empty() ? "" : "; ") + excerpt(tensors[i].name, kShown) + ": " + tensors[i].dtype + " [" +
            shape + "]";
  }
  if (tensors.size() > kTensorsShown)
    list += "; and " + std::to_string(tensors.size() - kTensorsShown) + " more";
  return list;
}

std::string prompt_of(const receipt::Receipt& r) {
  if (!r.withheld.empty()) return "withheld (receipt.27): the receipt has its digest alone";
  if (r.audio != Digest{})
    return "a recording, " + to_hex(r.audio).substr(0, 16) + ", from sample " +
           std::to_string(r.audio_start) + " on";
  const std::string tokens = " (" + counted(r.prompt_tokens.size(), "token") + ")";
  const Lines messages = messages_of(r);
  if (messages.empty()) return quoted(r.prompt) + tokens;
  return quoted(messages.back().second) + " (" + messages.back().first + ", the last of " +
         counted(messages.size(), "message") + "; " + counted(r.prompt_tokens.size(), "token") + ")";
}

std::string model_of(const receipt::Receipt& r) {
  std::string model = excerpt(r.model_name, kShown);
  if (!r.revision.empty()) model += "@" + excerpt(r.revision, kShown);
  if (!r.profile.empty()) model += ", " + r.profile;
  if (!r.operation_set.empty() && r.operation_set != "reproducible") model += ", " + r.operation_set;
  return model;
}

}  // namespace

// The text of a message, or of its parts. A stranger chose how deeply values are nested, so none is
// copied.
static std::string text_of(const Value& content) {
  if (content.is_string()) return content.text;
  std::string text;
  for (const Value& part : content.items) {
    if (!part.is_object()) continue;
    const auto found = part.find("text");
    if (found && found->is_string()) text += found->text;
  }
  return text;
}

Lines messages_of(const receipt::Receipt& r) {
  const Value chat = json::read_or_null(r.chat);
  const auto all = chat.is_object() ? chat.find("messages") : nullptr;
  Lines messages;
  if (!all || !all->is_array()) return messages;
  for (const Value& one : all->items) {
    if (!one.is_object()) return {};
    const auto role = one.find("role"), content = one.find("content");
    messages.emplace_back(role && role->is_string() ? role->text : "a message",
                          content ? text_of(*content) : "");
  }
  return messages;
}

Lines about(const receipt::Receipt& r) {
  Lines lines;
  const auto add = [&](const char* what, bool known, const std::string& text) {
    if (known) lines.emplace_back(what, text);
  };
  add("of", !r.model_name.empty(), model_of(r));
  add("adapter", r.adapter != Digest{}, quoted(r.adapter_name) + ", " + to_hex(r.adapter).substr(0, 16));
  if (r.format == receipt::kTensorFormat) {
    add("input", !r.input_tensors.empty(), listed(r.input_tensors));
    add("output", !r.output_tensors.empty(), listed(r.output_tensors));
    return lines;
  }
  add("prompt", !r.prompt_tokens.empty() || !r.withheld.empty() || r.audio != Digest{}, prompt_of(r));
  add("answer", !r.tokens.empty(),
      quoted(r.text) + " (" + counted(r.tokens.size(), "token") +
          (r.finish_reason == "length" ? ", cut at max_new_tokens)" : ")"));
  add("sampling", r.max_new_tokens > 0,
      sample::describe(r.sampling) + ", at most " + std::to_string(r.max_new_tokens) + " new tokens");
  add("salted", r.salt != Digest{}, "with a random salt, so `invar redact` can withhold the prompt");
  return lines;
}

}  // namespace invar::generate
