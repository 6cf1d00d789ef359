// Prompts from a file: JSON lines.
#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/json.h"
#include "generate/requests/request.h"

namespace invar::generate {
namespace {

constexpr FileKind kPromptFile{"a prompt file", uint64_t{256} << 20, true};

// One line of it.
Result<Prompt> read_prompt(std::string_view row, const std::string& where, const ChatOptions& options) {
  using json::Value;
  INVAR_TRY(Value line, json::parse(row, where));
  if (line.kind == Value::string) return Prompt{line.text, {}};
  const Value* prompt = nullptr;
  const auto is_messages = [](const auto& member) { return member.first == "messages"; };
  if (line.kind == Value::array || std::any_of(line.members.begin(), line.members.end(), is_messages)) {
    INVAR_TRY(std::string chat, chat_input(row, where, options));
    return Prompt{"", {}, std::move(chat)};
  }
  for (const auto& [key, value] : line.members) {
    if (key != "prompt")
      return bad_input(where + ": " + json::quote(json::brief(key)) +
                       " is no key of a prompt, \"prompt\" and \"messages\" are: give parameters as options");
    if (prompt) return bad_input(where + ": \"prompt\" is given twice");
    prompt = &value;
  }
  if (!prompt || prompt->kind != Value::string)
    return bad_input(where +
                     ": neither a JSON string, a list of messages nor an object with \"prompt\" or "
                     "\"messages\"");
  return Prompt{prompt->text, {}};
}

}  // namespace

std::string numbered_receipt(const std::string& path, uint64_t number) {
  const std::filesystem::path base(path);
  const std::string name = base.stem().string() + "." + std::to_string(number) + base.extension().string();
  return (base.parent_path() / name).string();
}

Result<std::vector<Prompt>> read_prompt_file(const std::string& path, const std::string& receipt_path,
                                             const ChatOptions& options) {
  INVAR_TRY(std::string text, read_file(path, kPromptFile));
  std::vector<Prompt> prompts;
  size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = path + ":" + std::to_string(line);
    auto read = read_prompt(row, where, options);
    Prompt prompt = read ? std::move(*read) : Prompt{};
    if (!read) prompt.problem = read.error();
    prompt.receipt_path = receipt_path, prompt.name = where;
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) return bad_input(path + ": no prompts in it");
  if (prompts.size() == 1 && prompts[0].problem) return *prompts[0].problem;
  return with_own_receipts(std::move(prompts));
}

std::vector<Prompt> with_own_receipts(std::vector<Prompt> prompts) {
  for (size_t i = 0; prompts.size() > 1 && i < prompts.size(); ++i)
    if (prompts[i].receipt_path) prompts[i].receipt_path = numbered_receipt(*prompts[i].receipt_path, i + 1);
  return prompts;
}

std::vector<Prompt> each_of_n(const std::vector<Prompt>& prompts, uint64_t n) {
  if (n == 1) return prompts;
  std::vector<Prompt> all;
  for (const Prompt& prompt : prompts)
    for (uint64_t j = 0; j < (prompt.problem ? 1 : n); ++j) {
      Prompt& one = all.emplace_back(prompt);
      one.stream = j;
      if (one.receipt_path) one.receipt_path = numbered_receipt(*one.receipt_path, j + 1);
    }
  return all;
}

}  // namespace invar::generate
