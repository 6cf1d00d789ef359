#include "screen/canvas.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "screen/text.h"

namespace invar::tui {

Canvas::Canvas(int width, int height)
    : width_(std::max(1, width)),
      height_(std::max(1, height)),
      cells_(static_cast<size_t>(width_) * static_cast<size_t>(height_)) {}

std::string Canvas::row(int y) const {
  std::string out;
  for (int x = 0; x < width_; ++x) out += at(x, y).text;
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

int Canvas::put(int x, int y, std::string_view text, Style style, int width) {
  const int limit = std::min(width_, x + std::min(width, width_));
  if (y < 0 || y >= height_) return x;
  constexpr size_t kMostBytes = 24;  // of a cell, with its combining characters
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    const int columns = columns_of(decode_utf8(text, at));
    const std::string_view character = text.substr(from, at - from);
    if (columns == 0) {
      int before = x - 1;
      if (before > 0 && before < width_ && cell(before, y).text.empty()) --before;
      if (before >= 0 && before < width_ && from > 0 && cell(before, y).text.size() < kMostBytes)
        cell(before, y).text += character;
      continue;
    }
    if (x + columns > limit) break;
    if (x >= 0) {
      // Half of a wide character that is written over becomes a space.
      if (cell(x, y).text.empty() && x > 0) cell(x - 1, y).text = " ";
      if (x + columns < width_ && cell(x + columns, y).text.empty()) cell(x + columns, y).text = " ";
      cell(x, y) = {std::string(character), style};
      if (columns == 2) cell(x + 1, y) = {"", style};
    }
    x += columns;
  }
  return x;
}

void Canvas::fill(const Rect& r, Style style) {
  const std::string spaces(static_cast<size_t>(std::max(0, r.width)), ' ');
  for (int y = r.y; y < r.y + r.height; ++y) put(r.x, y, spaces, style);
}

void Canvas::rule(int x, int y, int width, const std::string& title, Style style) {
  for (int i = 0; i < width; ++i) put(x + i, y, "─", style);
  if (!title.empty() && width > 4) put(x + 1, y, " " + clip(title, width - 4) + " ", style);
}

void Canvas::box(const Rect& r, const std::string& title, Style style) {
  fill(r);
  for (int x = r.x; x < r.x + r.width; ++x) {
    put(x, r.y, "─", style);
    put(x, r.y + r.height - 1, "─", style);
  }
  for (int y = r.y; y < r.y + r.height; ++y) {
    put(r.x, y, "│", style);
    put(r.x + r.width - 1, y, "│", style);
  }
  put(r.x, r.y, "┌", style);
  put(r.x + r.width - 1, r.y, "┐", style);
  put(r.x, r.y + r.height - 1, "└", style);
  put(r.x + r.width - 1, r.y + r.height - 1, "┘", style);
  if (!title.empty()) put(r.x + 2, r.y, " " + clip(title, r.width - 6) + " ", style);
}

void Canvas::progress(int x, int y, int width, double fraction, Style style) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  for (int i = 0; i < width; ++i) put(x + i, y, i < full ? "█" : "░", i < full ? style : Style::dim);
}

void Canvas::press(const Rect& rect, Key key) {
  presses_.push_back({rect, std::move(key)});
}

Key Canvas::pressed(int x, int y) const {
  for (auto it = presses_.rbegin(); it != presses_.rend(); ++it)
    if (it->rect.contains(x, y)) return it->key;
  return {};
}

}  // namespace invar::tui
