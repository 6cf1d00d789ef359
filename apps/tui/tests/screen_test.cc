// Columns, wrapping, editing and the canvas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

#include "screen/canvas.h"
#include "screen/edit.h"
#include "screen/popup.h"
#include "screen/text.h"

namespace invar::tui {
namespace {

using testing::ElementsAre;
using K = Key::Kind;

// Widths are those of a UTF-8 locale.
const char* const kScreenLocale = std::setlocale(LC_CTYPE, "C.UTF-8");

Key typed(const char* text) {
  return {K::text, text};
}

TEST(Text, Columns) {
  ASSERT_NE(kScreenLocale, nullptr);
  EXPECT_EQ(columns("abc"), 3);
  EXPECT_EQ(columns("日本"), 4);
  EXPECT_EQ(columns("e\u0301"), 1);
  EXPECT_EQ(clip("日本語", 4), "日…");
  EXPECT_EQ(clip("abc", 3), "abc");
  EXPECT_EQ(clip("abc", 0), "");
  EXPECT_EQ(clip_middle("0123456789", 7), "01…6789");
  EXPECT_EQ(padded("日", 4), "日  ");
}

TEST(Text, Wraps) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(wrap("日本語", 3), ElementsAre("日", "本", "語"));
  EXPECT_THAT(wrap("a\n\nb\n", 9), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(wrap("a\tb", 9), ElementsAre("a   b"));
  EXPECT_THAT(wrap("", 9), ElementsAre(""));
  EXPECT_THAT(wrap("日", 1), ElementsAre("日"));  // too narrow, and yet it ends
  EXPECT_THAT(wrap("\x1b[2J\x07", 20), ElementsAre("\\x1b[2J\\x07"));
}

TEST(Text, WrappingAnewGivesTheSame) {
  const std::string text =
      "The quality of mercy is not strained.\nIt droppeth\tas the 日本語 gentle rain\n\nend";
  for (const int width : {5, 11, 40}) {
    Wrapped grown;
    for (size_t n = 0; n <= text.size(); ++n) grown.set(text.substr(0, n), width);
    EXPECT_EQ(grown.lines(), wrap(text, width)) << width;
    grown.set("another", width);
    EXPECT_THAT(grown.lines(), testing::Contains(width == 5 ? "anoth" : "another"));
  }
}

TEST(Canvas, WideCharactersAndTheEdge) {
  Canvas canvas(6, 2);
  EXPECT_EQ(canvas.put(0, 0, "a日b本c"), 6);
  EXPECT_EQ(canvas.row(0), "a日b本");
  canvas.put(2, 0, "x");  // on the right half of a wide one
  EXPECT_EQ(canvas.row(0), "a xb本");
  canvas.put(4, 1, "日");
  EXPECT_EQ(canvas.row(1), "    日");
  canvas.put(5, 1, "日");  // does not fit
  EXPECT_EQ(canvas.row(1), "    日");
  canvas.put(0, 1, "e\u0301!");
  EXPECT_EQ(canvas.row(1), "e\u0301!  日");
  canvas.put(-2, 5, "nowhere");
}

TEST(Canvas, Presses) {
  Canvas canvas(20, 5);
  canvas.press({0, 0, 20, 5}, function_key(1));
  canvas.press({2, 2, 3, 1}, function_key(2));
  EXPECT_TRUE(canvas.pressed(3, 2).is_function(2));
  EXPECT_TRUE(canvas.pressed(3, 3).is_function(1));
  canvas.cover();
  EXPECT_TRUE(canvas.pressed(3, 2).is(K::none));
}

TEST(Edit, OneLine) {
  Edit edit;
  for (const char* c : {"a", "日", "e\u0301", "z"}) edit.handle(typed(c));
  edit.handle({K::left});
  edit.handle({K::backspace});  // with its accent
  EXPECT_EQ(edit.text(), "a日z");
  edit.handle({K::home});
  edit.handle({K::erase});
  EXPECT_EQ(edit.text(), "日z");
  EXPECT_FALSE(edit.handle({K::enter}));
  EXPECT_FALSE(edit.handle({K::down}));
  EXPECT_EQ(edit.insert("x\ny\tz"), 0u);
  EXPECT_EQ(edit.text(), "x y z日z");
  edit.handle({K::control, {}, 'k'});
  EXPECT_EQ(edit.text(), "x y z");
  edit.handle({K::control, {}, 'w'});
  EXPECT_EQ(edit.text(), "x y ");
  edit.handle({K::control, {}, 'u'});
  EXPECT_EQ(edit.text(), "");
  edit.handle({K::backspace});
  EXPECT_EQ(edit.text(), "");
}

TEST(Edit, PastesLeaveControlCharactersOut) {
  Edit edit(true);
  EXPECT_EQ(edit.insert("a\x1b[31mb\r\nc\rd\x07\xff"), 3u);
  EXPECT_EQ(edit.text(), "a[31mb\nc\nd");
}

TEST(Edit, SeveralLines) {
  Edit edit(true);
  Canvas canvas(10, 4);
  edit.set("first\nsecond line\nx");
  edit.draw(canvas, {0, 0, 8, 4}, true);
  EXPECT_EQ(canvas.row(0), "first");
  EXPECT_EQ(canvas.row(1), "second");
  EXPECT_EQ(canvas.row(2), "line");
  EXPECT_EQ(canvas.cursor_y(), 3);
  edit.handle({K::up});
  edit.handle(typed("!"));
  EXPECT_EQ(edit.text(), "first\nsecond l!ine\nx");
  edit.handle({K::up});
  edit.handle({K::up});
  EXPECT_FALSE(edit.handle({K::up}));  // the form's, at the first line
  edit.handle({K::enter});
  EXPECT_EQ(edit.rows(8), 5);
}

TEST(Edit, ALongLineFollowsTheCursor) {
  Edit edit;
  Canvas canvas(10, 1);
  edit.set("0123456789abcdef");
  edit.draw(canvas, {0, 0, 6, 1}, true);
  EXPECT_EQ(canvas.row(0), "bcdef");
  EXPECT_EQ(canvas.cursor_x(), 5);
  edit.handle({K::home});
  edit.draw(canvas, {0, 0, 6, 1}, true);
  EXPECT_EQ(canvas.row(0), "01234…");
  EXPECT_EQ(canvas.cursor_x(), 0);
}

TEST(Scroller, FollowsUntilItIsMoved) {
  Scroller s;
  EXPECT_EQ(s.first(100, 10), 90u);
  EXPECT_EQ(s.first(120, 10), 110u);
  s.handle({K::page_up});
  EXPECT_EQ(s.first(130, 10), 101u);
  s.handle({K::end});
  EXPECT_EQ(s.first(140, 10), 130u);
  EXPECT_EQ(s.first(3, 10), 0u);
}

}  // namespace
}  // namespace invar::tui
