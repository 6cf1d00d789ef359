// The picture that a terminal then shows: cells, and the places that a mouse may press.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "screen/key.h"

namespace invar::tui {

enum class Style { plain, bold, dim, title, focus, accent, good, bad, warn, bar };

struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
  bool contains(int px, int py) const { return px >= x && px < x + width && py >= y && py < y + height; }
};

class Canvas {
 public:
  struct Cell {
    std::string text = " ";  // "" = the right half of the wide character before it
    Style style = Style::plain;
  };
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  Rect all() const { return {0, 0, width_, height_}; }
  const Cell& at(int x, int y) const { return cells_[static_cast<size_t>(y * width_ + x)]; }
  // A row without its styles and the spaces at its end.
  std::string row(int y) const;

  // The text, cut at `width` columns and at the edge. Returns the column behind it. Characters that
  // a terminal would obey must be escaped already (screen/text.h).
  int put(int x, int y, std::string_view text, Style = Style::plain, int width = 1 << 20);
  void fill(const Rect&, Style = Style::plain);
  // A line across, with a title in it.
  void rule(int x, int y, int width, const std::string& title = "", Style = Style::dim);
  void box(const Rect&, const std::string& title, Style = Style::accent);
  // `fraction` of 0 to 1 in blocks.
  void progress(int x, int y, int width, double fraction, Style = Style::bar);

  // Pressing there is the key.
  void press(const Rect&, Key);
  // The key of a press there, by the place added last; of kind none: there is no place.
  Key pressed(int x, int y) const;
  // Later press() calls alone count: what lies under a dialog is out of reach.
  void cover() { presses_.clear(); }

  void show_cursor(int x, int y) { cursor_x_ = x, cursor_y_ = y; }
  void hide_cursor() { cursor_x_ = -1; }
  int cursor_x() const { return cursor_x_; }
  int cursor_y() const { return cursor_y_; }

 private:
  struct Press {
    Rect rect;
    Key key;
  };
  Cell& cell(int x, int y) { return cells_[static_cast<size_t>(y * width_ + x)]; }

  int width_, height_, cursor_x_ = -1, cursor_y_ = 0;
  std::vector<Cell> cells_;
  std::vector<Press> presses_;
};

}  // namespace invar::tui
