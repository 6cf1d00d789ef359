// Columns of text: how wide it is, where it is cut, how it is wrapped. Needs a UTF-8 locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace invar::tui {

// Columns of a terminal: 0 for combining characters, 2 for wide ones.
int columns_of(uint32_t code_point);
int columns(std::string_view text);

// Text of unknown origin as one visible line.
std::string one_line(std::string_view text);
// Cuts to at most so many columns; a cut text ends with an ellipsis.
std::string clip(std::string_view text, int width);
// The same without the middle: for paths.
std::string clip_middle(std::string_view text, int width);
// The text and spaces, exactly so many columns.
std::string padded(std::string_view text, int width);
// A path below the home folder with ~.
std::string short_path(const std::string& path);

// Lines of at most so many columns, broken at spaces where there are some. Control characters of
// the text are escaped.
std::vector<std::string> wrap(std::string_view text, int width);

// A text that grows and its lines. Only the last paragraph is wrapped again.
class Wrapped {
 public:
  // `text` begins with what it was in the last call, or is another one.
  void set(const std::string& text, int width);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string stable_;  // the paragraphs that are wrapped for good
  std::vector<std::string> lines_;
  size_t stable_lines_ = 0;
  int width_ = 0;
};

}  // namespace invar::tui
