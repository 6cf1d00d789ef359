// The view of an answer that OpenAI's API shows (spec/sampling.md sampling.27).
#include "generate/engine/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace invar::generate {
namespace {

using Texts = std::vector<std::string>;

// The clause, read word by word: the place that ends first, the longest of those.
std::string written_out(const std::string& text, const Texts& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return text.substr(0, include ? end : end - longest);
  }
  return text;
}

TEST(StopView, WhatIsShown) {
  EXPECT_EQ(stop_view("Hello\nUser: hi", Texts{"\nUser:"}), "Hello");
  EXPECT_EQ(stop_view("Hello\nUser: hi", Texts{"\nUser:"}, true), "Hello\nUser:");
  EXPECT_EQ(stop_view("Hello\nUse", Texts{"\nUser:"}), "Hello\nUse");
  EXPECT_EQ(stop_view("Hello", Texts{}), "Hello");
  EXPECT_EQ(stop_view("", Texts{"a"}), "");
  EXPECT_EQ(stop_view("abcd", Texts{"bcd", "c"}), "ab") << "the one that ends first";
  EXPECT_EQ(stop_view("abcd", Texts{"c", "bc"}), "a") << "the longest of those that end together";
  EXPECT_EQ(stop_view("aaab", Texts{"aab"}), "a");
  EXPECT_EQ(stop_view("\xf0\x9f\x8e\xad!", Texts{"\xf0\x9f\x8e\xad"}), "");
}

// However the text comes in pieces, what is shown is a beginning of the view and in the end all of
// it: nothing is taken back.
TEST(StopView, PiecesShowTheSame) {
  std::mt19937 random(42);
  const auto next = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto word = [&](size_t least, size_t most) {
    std::string made;
    for (size_t n = least + next(most - least + 1); made.size() < n;)
      made += static_cast<char>('a' + next(2));
    return made;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string text = word(0, 24);
    Texts stops;
    for (size_t n = next(4); stops.size() < n;) stops.push_back(word(1, 5));
    const bool include = next(2) > 0;
    const std::string whole = written_out(text, stops, include);
    ASSERT_EQ(stop_view(text, stops, include), whole);
    StopView view(stops, include);
    std::string shown;
    for (size_t at = 0, n; at < text.size(); at += n) {
      n = std::min(next(6), text.size() - at);
      shown += view.push(text.substr(at, n));
      ASSERT_TRUE(whole.starts_with(shown)) << text;
    }
    EXPECT_EQ(shown + view.finish(), whole);
    EXPECT_EQ(view.found(), whole != text || (include && written_out(text, stops, false) != text));
    EXPECT_EQ(view.push("more"), view.found() ? "" : "more");
  }
}

// No more is held back than may begin a stop text, so that a stream does not lag.
TEST(StopView, HoldsBackWhatMayBeginAStopText) {
  const Texts stops{"\nUser:"};
  StopView view(stops);
  EXPECT_EQ(view.push("Hello"), "Hello");
  EXPECT_EQ(view.push("!\nUs"), "!");
  EXPECT_EQ(view.push("ual\n"), "\nUsual");
  EXPECT_EQ(view.push("User:..."), "");
  EXPECT_TRUE(view.found());
  EXPECT_EQ(view.finish(), "");
}

}  // namespace
}  // namespace invar::generate
