#include "screen/edit.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "screen/text.h"

namespace invar::tui {
namespace {

using K = Key::Kind;

// A character as it is shown.
std::string glyph(std::string_view character) {
  if (character == "\t") return "→   ";
  return one_line(character);
}

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t';
}

}  // namespace

void Edit::set(std::string text) {
  text_ = std::move(text);
  text_.resize(valid_prefix(text_));
  cursor_ = text_.size();
  first_ = 0;
}

size_t Edit::insert(std::string_view more) {
  std::string clean;
  size_t left_out = 0;
  for (size_t at = 0; at < more.size();) {
    const char c = more[at];
    const Utf8Sequence s = sequence_at(more, at);
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '\r') {
      if (at + 1 >= more.size() || more[at + 1] != '\n') clean += lines_ ? '\n' : ' ';
    } else if (c == '\n' || c == '\t') {
      clean += lines_ ? c : ' ';
    } else if (control || s.kind != Utf8Sequence::well) {
      ++left_out;
    } else {
      clean += more.substr(at, s.length);
    }
    at += s.length;
  }
  text_.insert(cursor_, clean);
  cursor_ += clean.size();
  return left_out;
}

// The start of the next character that is not a combining one.
size_t Edit::next(size_t at) const {
  if (at >= text_.size()) return at;
  decode_utf8(text_, at);
  for (size_t after = at; at < text_.size(); at = after) {
    const uint32_t c = decode_utf8(text_, after);
    if (c < 0x80 || columns(glyph(text_.substr(at, after - at))) > 0) break;
  }
  return at;
}

size_t Edit::previous(size_t at) const {
  while (at > 0) {
    const size_t end = at;
    at = previous_utf8(text_, at);
    if (columns(glyph(text_.substr(at, end - at))) > 0 || text_[at] == '\n') break;
  }
  return at;
}

void Edit::erase(size_t from, size_t to) {
  text_.erase(from, to - from);
  cursor_ = from;
}

bool Edit::handle(const Key& key) {
  const size_t before = cursor_;
  const auto line_start = [&] {
    const size_t at = cursor_ == 0 ? text_.npos : text_.rfind('\n', cursor_ - 1);
    return at == text_.npos ? 0 : at + 1;
  };
  const auto line_end = [&] { return std::min(text_.find('\n', cursor_), text_.size()); };
  const auto word_start = [&] {
    size_t at = cursor_;
    while (at > 0 && is_blank(text_[at - 1])) --at;
    while (at > 0 && !is_blank(text_[at - 1])) --at;
    return at;
  };
  switch (key.kind) {
    case K::text:
    case K::paste: return insert(key.text), true;
    case K::enter: return lines_ && (insert("\n"), true);
    case K::backspace: return erase(previous(cursor_), cursor_), true;
    case K::erase: return erase(cursor_, next(cursor_)), true;
    case K::left: return cursor_ = previous(cursor_), cursor_ != before;
    case K::right: return cursor_ = next(cursor_), cursor_ != before;
    case K::home: return cursor_ = line_start(), true;
    case K::end: return cursor_ = line_end(), true;
    case K::up: return lines_ && move_row(-1);
    case K::down: return lines_ && move_row(1);
    case K::word_left: return cursor_ = word_start(), true;
    case K::word_right:
      while (cursor_ < text_.size() && is_blank(text_[cursor_])) ++cursor_;
      while (cursor_ < text_.size() && !is_blank(text_[cursor_])) ++cursor_;
      return true;
    default: break;
  }
  if (key.is_control('a')) return cursor_ = line_start(), true;
  if (key.is_control('e')) return cursor_ = line_end(), true;
  if (key.is_control('k')) return erase(cursor_, line_end()), true;
  if (key.is_control('u')) return erase(line_start(), cursor_), true;
  if (key.is_control('w')) return erase(word_start(), cursor_), true;
  return false;
}

std::vector<Edit::Row> Edit::layout(int width) const {
  std::vector<Row> rows;
  size_t begin = 0;
  int used = 0;
  for (size_t at = 0; at < text_.size();) {
    const size_t from = at;
    decode_utf8(text_, at);
    if (text_[from] == '\n') {
      rows.push_back({begin, from});
      begin = at, used = 0;
      continue;
    }
    const int wide = columns(glyph(text_.substr(from, at - from)));
    if (used + wide > width - 1 && from > begin) {  // the last column is the cursor's
      rows.push_back({begin, from});
      begin = from, used = 0;
    }
    used += wide;
  }
  rows.push_back({begin, text_.size()});
  return rows;
}

int Edit::rows(int width) const {
  return lines_ ? static_cast<int>(layout(width).size()) : 1;
}

size_t Edit::row_of(const std::vector<Row>& rows) const {
  size_t row = 0;
  while (row + 1 < rows.size() && rows[row + 1].begin <= cursor_) ++row;
  return row;
}

bool Edit::move_row(int by) {
  const std::vector<Row> rows = layout(width_);
  const size_t row = row_of(rows);
  if ((by < 0 && row == 0) || (by > 0 && row + 1 == rows.size())) return false;
  const int column = columns(std::string_view(text_).substr(rows[row].begin, cursor_ - rows[row].begin));
  const Row& to = rows[by < 0 ? row - 1 : row + 1];
  size_t at = to.begin;
  for (int used = 0; at < to.end && used < column;) {
    size_t after = at;
    used += columns_of(decode_utf8(text_, after));
    at = after;
  }
  // The end of a row that goes on is the start of the next one.
  const bool wraps = at == to.end && at < text_.size() && text_[at] != '\n';
  cursor_ = wraps ? previous(at) : at;
  return true;
}

void Edit::draw(Canvas& canvas, const Rect& r, bool focused, Style style) {
  width_ = r.width;
  canvas.fill(r, style);
  if (!lines_) return draw_line(canvas, r, focused, style);
  const std::vector<Row> rows = layout(r.width);
  const size_t row = row_of(rows), height = static_cast<size_t>(std::max(1, r.height));
  if (rows.size() <= height) first_ = 0;
  if (row < first_) first_ = row;
  if (row >= first_ + height) first_ = row + 1 - height;
  for (size_t i = 0; i < height && first_ + i < rows.size(); ++i) {
    const Row& shown = rows[first_ + i];
    int x = r.x;
    const int y = r.y + static_cast<int>(i);
    for (size_t at = shown.begin; at <= shown.end;) {
      if (focused && at == cursor_ && first_ + i == row) canvas.show_cursor(x, y);
      if (at == shown.end) break;
      const size_t from = at;
      decode_utf8(text_, at);
      x = canvas.put(x, y, glyph(text_.substr(from, at - from)), style);
    }
  }
}

void Edit::draw_line(Canvas& canvas, const Rect& r, bool focused, Style style) {
  first_ = std::min(first_, text_.size());
  if (cursor_ < first_) first_ = cursor_;
  const auto used = [&](size_t from, size_t to) {
    int sum = 0;
    for (size_t at = from; at < to;) {
      const size_t begin = at;
      decode_utf8(text_, at);
      sum += columns(glyph(text_.substr(begin, at - begin)));
    }
    return sum;
  };
  if (!focused) first_ = 0;
  if (first_ > 0 && used(0, text_.size()) < r.width) first_ = 0;
  while (focused && first_ < cursor_ && used(first_, cursor_) > r.width - 1) first_ = next(first_);
  int x = r.x;
  for (size_t at = first_; at <= text_.size();) {
    if (focused && at == cursor_) canvas.show_cursor(x, r.y);
    if (at == text_.size()) break;
    const size_t from = at;
    decode_utf8(text_, at);
    const std::string shown = glyph(text_.substr(from, at - from));
    if (x + columns(shown) > r.x + r.width) {
      canvas.put(r.x + r.width - 1, r.y, "…", style);
      break;
    }
    x = canvas.put(x, r.y, shown, style);
  }
}

}  // namespace invar::tui
