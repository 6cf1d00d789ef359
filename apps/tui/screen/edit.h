// A text with a cursor: one line, or several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "screen/canvas.h"

namespace invar::tui {

class Edit {
 public:
  explicit Edit(bool lines = false) : lines_(lines) {}
  const std::string& text() const { return text_; }
  void set(std::string text);  // the cursor goes to its end

  // Whether the key changed something or moved the cursor; Enter and Tab are the caller's unless
  // there are several lines.
  bool handle(const Key&);
  // The number of control characters that were left out: a text field cannot show what they do.
  size_t insert(std::string_view text);

  // Draws the part around the cursor.
  void draw(Canvas&, const Rect&, bool focused, Style = Style::plain);
  // The rows that the text takes.
  int rows(int width) const;

 private:
  struct Row {
    size_t begin, end;  // of the text's bytes
  };
  std::vector<Row> layout(int width) const;
  size_t row_of(const std::vector<Row>&) const;
  bool move_row(int by);
  void draw_line(Canvas&, const Rect&, bool focused, Style);
  size_t next(size_t at) const;
  size_t previous(size_t at) const;
  void erase(size_t from, size_t to);

  bool lines_;
  std::string text_;
  size_t cursor_ = 0;
  size_t first_ = 0;  // the row, or the byte of a line, that is drawn first
  int width_ = 40;    // of the last drawing
};

}  // namespace invar::tui
