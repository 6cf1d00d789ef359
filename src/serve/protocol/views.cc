#include "serve/protocol/views.h"

#include <algorithm>

#include "prompt/chat.h"

namespace invar::serve {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kOpen = "<think>", kClose = "</think>";
// What a tool call may begin with.
constexpr std::string_view kMarks[] = {"<tool_call>", "[TOOL_CALLS]", "<|python_tag|>"};

std::string_view without_begin(std::string_view s) {
  return s.substr(std::min(s.find_first_not_of(kSpace), s.size()));
}
std::string_view without_end(std::string_view s) {
  return s.substr(0, s.find_last_not_of(kSpace) + 1);
}

// The length of the longest end of `text` that `mark` begins with and that is not all of it.
size_t begun(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
    if (text.ends_with(mark.substr(0, n))) return n;
  return 0;
}

}  // namespace

// What of these, whose begins are certain, was not given yet.
ChatView::Delta ChatView::up_to(std::string_view reasoning, std::string_view content) {
  Delta delta;
  if (reasoning.size() > reasoning_sent_) delta.reasoning = reasoning.substr(reasoning_sent_);
  if (content.size() > content_sent_) delta.content = content.substr(content_sent_);
  reasoning_sent_ += delta.reasoning.size(), content_sent_ += delta.content.size();
  return delta;
}

bool ChatView::reasons() const {
  const std::string_view begin = without_begin(text_);
  const bool open = opened_ || begin.starts_with(kOpen) || kOpen.starts_with(begin);
  return open && text_.find(kClose) == text_.npos;
}

ChatView::Delta ChatView::push(std::string_view piece) {
  text_ += piece;
  std::string_view rest = text_, reasoning;
  const std::string_view begin = without_begin(text_);
  if (begin.size() < kOpen.size() && kOpen.starts_with(begin)) return {};  // it may open <think>
  if (opened_ || begin.starts_with(kOpen)) {
    const std::string_view inside = begin.starts_with(kOpen) ? begin.substr(kOpen.size()) : text_;
    const size_t end = inside.find(kClose);
    if (end == inside.npos)
      return up_to(without_end(without_begin(inside.substr(0, inside.size() - begun(inside, kClose)))), "");
    reasoning = without_end(without_begin(inside.substr(0, end)));
    rest = inside.substr(end + kClose.size());
  }
  const bool strips = tools_ || !reasoning.empty();
  if (tools_) {
    const std::string_view start = without_begin(rest);
    if (start.starts_with('{') || start.starts_with('[')) return up_to(reasoning, "");
    size_t certain = rest.size();
    for (const std::string_view mark : kMarks)
      certain = std::min({certain, rest.find(mark), rest.size() - begun(rest, mark)});
    rest = rest.substr(0, certain);
  }
  return up_to(reasoning, strips ? without_end(without_begin(rest)) : rest);
}

ChatView::Delta ChatView::finish(json::Value& calls) {
  const prompt::ChatAnswer parts = prompt::parse_answer(text_, opened_, tools_);
  calls = json::read_or_null(parts.tool_calls, json::Order::as_written);
  const std::string_view content = parts.content;
  return up_to(parts.reasoning, tools_ ? without_end(without_begin(content)) : content);
}

}  // namespace invar::serve
