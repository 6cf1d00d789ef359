// Fuzzes what users give as prompts: a prompt file (JSON lines), messages, tools, a file of texts
// for an encoder. What is made of messages must be messages again. An input: the file, the tools.
#include "fuzz/parsers/parts.h"
#include "generate/encoder/encoder.h"
#include "generate/requests/request.h"

namespace invar {
namespace {

void try_chat(std::string_view text, const generate::ChatOptions& options) {
  const auto chat = generate::chat_input(text, "messages.json", options);
  if (!chat) return expect(chat.error());
  generate::ChatOptions nothing;
  const auto again = generate::chat_input(*chat, "again.json", nothing);
  if (!again || *again != *chat) defect("messages change when they are read: " + *chat);
}

void try_texts(const std::string& file) {
  const auto texts = generate::read_text_file(file, "text");
  if (!texts) return expect(texts.error());
  for (const generate::EncoderText& t : *texts) {
    if (t.problem) expect(*t.problem);
    if (t.problem && !t.text.empty()) defect("a bad line has a text");
  }
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  generate::ChatOptions options;
  options.date = "2026-01-02T03:04:05";
  try_chat(parts[0], options);
  if (parts.size() > 1) options.tools = parts[1], options.tools_file = "tools.json";
  options.system = "S", options.enable_thinking = true;
  try_chat(parts[0], options);
  for (const char* name : {"p.jsonl", "p.txt"}) put(name, parts[0]), try_texts(folder() + "/" + name);
  const auto prompts = generate::read_prompt_file(folder() + "/p.jsonl", "out/r.json", options);
  if (!prompts) return expect(prompts.error()), 0;
  for (const auto& p : *prompts) {
    if (p.problem) expect(*p.problem);
    if (p.problem && !(p.text.empty() && p.chat.empty())) defect("a bad line has a prompt");
    if (!p.receipt_path || p.receipt_path->find("out/r") != 0) defect("a receipt outside its folder");
  }
  return 0;
}
