// A stream joined is the whole answer, wherever its text is cut; and that is what parse_answer
// says.
#include "serve/protocol/views.h"

#include <gtest/gtest.h>

#include "prompt/chat.h"

namespace invar::serve {
namespace {

struct Whole {
  std::string reasoning, content, calls;
  bool operator==(const Whole&) const = default;
};

// The view of a text that comes in pieces of so many bytes.
Whole viewed(const std::string& text, bool reasons, bool tools, size_t piece) {
  ChatView view(reasons, tools);
  Whole whole;
  const auto add = [&](const ChatView::Delta& d) {
    // Content never comes before the end of reasoning.
    EXPECT_TRUE(d.reasoning.empty() || whole.content.empty()) << text;
    whole.reasoning += d.reasoning, whole.content += d.content;
  };
  for (size_t at = 0; at < text.size(); at += piece) add(view.push(text.substr(at, piece)));
  json::Value calls;
  add(view.finish(calls));
  whole.calls = json::compact(calls);
  return whole;
}

TEST(ChatView, AnyPiecesGiveTheSame) {
  const std::string call = R"({"name": "f", "arguments": {"a": [1, "}"]}})";
  const std::string texts[] = {
      "",
      " plain text\n",
      "  \n",
      "<",
      "a < b and <th",
      "<think>why\n</think>\n\nanswer ",
      " <think> </think>answer",
      "<think>no end",
      "<think>a </thin</think>b</think>",
      "why</think>answer",
      "why </thi",
      "<think>a</think><tool_call>\n" + call + "\n</tool_call>",
      "before <tool_call>" + call + "</tool_call> between <tool_call>" + call + "</tool_call> after ",
      "<tool_call>{\"name\": </tool_call>",
      "<tool_call>" + call,
      "x <tool_c",
      "[TOOL_CALLS] [" + call + "]",
      "text [TOOL_CALLS]" + call,
      "<|python_tag|>" + call + "; " + call,
      call,
      " " + call + "\n",
      call + " and text",
      "[1, 2, 3]",
      "{not json",
  };
  for (const std::string& text : texts) {
    for (const bool reasons : {false, true}) {
      for (const bool tools : {false, true}) {
        const Whole want = viewed(text, reasons, tools, text.size() + 1);
        for (size_t piece = 1; piece <= text.size(); ++piece)
          EXPECT_EQ(viewed(text, reasons, tools, piece), want) << text << " by " << piece;
        const prompt::ChatAnswer parsed = prompt::parse_answer(text, reasons, tools);
        EXPECT_EQ(want.reasoning, parsed.reasoning) << text;
        EXPECT_EQ(json::compact(json::read_or_null(want.calls)),
                  json::compact(json::read_or_null(parsed.tool_calls)))
            << text;
        if (!tools) EXPECT_EQ(want.content, parsed.content) << text;
        if (!tools) EXPECT_EQ(want.calls, "[]") << text;
      }
    }
  }
}

TEST(ChatView, CallsAndTextAroundThem) {
  const std::string call = R"({"name": "f", "arguments": {"a": 1}})";
  const Whole got = viewed(" So: <tool_call>" + call + "</tool_call> done ", false, true, 3);
  EXPECT_EQ(got.content, "So:  done");
  EXPECT_EQ(got.calls,
            R"([{"id":"call_0","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}])");
}

}  // namespace
}  // namespace invar::serve
