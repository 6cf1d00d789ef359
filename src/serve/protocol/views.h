// What a client sees of an answer: the text up to a stop text, and a chat's text taken apart.
// Whatever is given once is never taken back, so that a stream joined is the whole answer.
#pragma once

#include <string>
#include <string_view>

#include "base/text/json.h"

namespace invar::serve {

// Reasoning, content and tool calls (spec/chat.md chat.7). With tools the content has no white
// space at its ends; without them what looks like a call is content.
class ChatView {
 public:
  struct Delta {
    std::string reasoning, content;
    bool empty() const { return reasoning.empty() && content.empty(); }
  };
  // `reasons`: prompt::begins_in_reasoning() of its prompt.
  ChatView(bool reasons, bool tools) : tools_(tools), opened_(reasons) {}
  Delta push(std::string_view piece);
  // Whether what has come is reasoning or may be, and its end is yet to come.
  bool reasons() const;
  bool has_reasoned() const { return reasoning_sent_ > 0; }
  // The rest; `calls` gets the list of tool calls.
  Delta finish(json::Value& calls);

 private:
  Delta up_to(std::string_view reasoning, std::string_view content);

  bool tools_, opened_;
  std::string text_;
  size_t reasoning_sent_ = 0, content_sent_ = 0;
};

}  // namespace invar::serve
