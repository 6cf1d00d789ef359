// Fuzzes chat templates with conversations: rendering ends, within its memory, and twice gives the
// same. An input: the template, the JSON of chat.1, or tokenizer_config.json with templates.
#include "base/text/display.h"
#include "base/text/utf8.h"
#include "fuzz/parsers/parts.h"
#include "generate/model/chat_template_text.h"
#include "prompt/chat.h"

namespace invar {
namespace {

constexpr std::string_view kChat =
    R"({"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi é"},{"role":"assistant",)"
    R"("content":"a","tool_calls":[{"function":{"name":"f","arguments":{"x":[1,2.5,null,true]}}}]}],"tools":[{"type":)"
    R"("function","function":{"name":"f","parameters":{"properties":{"x":{"type":"string"}}}}}],)"
    R"("variables":{"enable_thinking":false,"n":3},"date":"2026-01-02T03:04:05"})";

void try_template(std::string_view source, std::string_view chat) {
  prompt::ChatTemplates templates;
  templates.texts["default"] = source;
  templates.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const auto rendered = prompt::render_chat(templates, chat, "chat.json");
  const auto again = prompt::render_chat(templates, chat, "chat.json");
  if (bool(rendered) != bool(again)) defect("a template is rendered once of two times");
  // Programs print printable(error): a template may put line breaks into its message.
  if (!rendered) return expect({rendered.error().code, printable(rendered.error().message)});
  if (rendered->text != again->text || rendered->input != again->input) defect("two renderings differ");
  const auto spelled = prompt::render_chat(templates, rendered->input, "input.json");
  if (!spelled) defect("the input as a receipt has it is refused: " + spelled.error().message);
  if (spelled->text != rendered->text || spelled->input != rendered->input)
    defect("the input's spelling is another");
  prompt::parse_answer(rendered->text, prompt::begins_in_reasoning(rendered->text, rendered->input));
}

// Templates as a folder has them, of which receipts have one text.
void try_config(const json::Value& config, std::string_view chat) {
  const auto read = generate::read_chat_templates(folder(), config, config);
  if (!read) return expect(read.error());
  if (const std::string text = generate::chat_template_text(*read); valid_prefix(text) != text.size())
    defect("a text of templates that is not UTF-8: " + text);
  if (const auto rendered = prompt::render_chat(*read, chat, "chat.json"); !rendered)
    expect({rendered.error().code, printable(rendered.error().message)});
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  const std::string_view chat = parts.size() > 1 ? parts[1] : kChat;
  try_template(parts[0], chat);
  if (const auto config = json::read(parts[0], "tokenizer_config.json"); config && config->is_object())
    try_config(*config, chat);
  // An answer and its prompt are decoded text.
  const std::string_view prompt = parts.size() > 1 ? parts[1] : "<think>";
  if (valid_prefix(parts[0]) == parts[0].size() && valid_prefix(prompt) == prompt.size())
    prompt::parse_answer(parts[0], prompt::begins_in_reasoning(prompt, ""));
  return 0;
}
