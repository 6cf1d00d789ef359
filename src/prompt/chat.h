// Messages -> the text of a prompt, as transformers' apply_chat_template makes it; the text of an
// answer -> tool calls (spec/chat.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::prompt {

struct ChatTemplates {                                // of a checkpoint
  std::map<std::string, std::string> texts;           // by name (receipt.19)
  std::map<std::string, std::string> special_tokens;  // bos_token, eos_token, ...: variables of templates
};

struct RenderedChat {
  std::string text;   // the prompt
  std::string input;  // what it was made from, in its one spelling (chat.3)
};

// `chat` is the JSON object of chat.1, `name` what errors call it. Errors: bad_input names the
// place in the JSON or the line of the template; not_covered what a template may not use here, and
// a part of a message that is no text.
Result<RenderedChat> render_chat(const ChatTemplates&, std::string_view chat, const std::string& name);

// Whether chat.1 has such dates.
bool is_date(std::string_view);

// A remark that names the texts of messages which the template left out of the prompt; "" where it
// wrote all of them.
std::string texts_left_out(const ChatTemplates&, const RenderedChat&);

// An answer's text taken apart (chat.7).
struct ChatAnswer {
  std::string content;     // without reasoning and tool calls
  std::string reasoning;   // between <think> and </think>; "" where there is none
  std::string tool_calls;  // JSON: a list in OpenAI's form, "[]" where there is none
};
// `reasons`: begins_in_reasoning() of its prompt. Without `calls` what looks like a call is text.
ChatAnswer parse_answer(std::string_view text, bool reasons, bool calls = true);

// Whether the text of a prompt ends inside an open think block (chat.9). `input` is that of
// RenderedChat, "" of a prompt that is no chat.
bool begins_in_reasoning(std::string_view text, std::string_view input);

}  // namespace invar::prompt
