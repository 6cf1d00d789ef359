#include "screen/text.h"

#include <algorithm>
#include <cstdlib>
#include <cwchar>

#include "base/text/display.h"
#include "base/text/utf8.h"

namespace invar::tui {

int columns_of(uint32_t code_point) {
  return std::max(0, ::wcwidth(static_cast<wchar_t>(code_point)));
}

int columns(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) width += columns_of(decode_utf8(text, at));
  return width;
}

std::string one_line(std::string_view text) {
  return printable(text);
}

namespace {

// The bytes of the longest start of `text` in so many columns, combining characters included.
size_t prefix_in(std::string_view text, int width) {
  size_t at = 0;
  for (int used = 0; at < text.size();) {
    size_t next = at;
    used += columns_of(decode_utf8(text, next));
    if (used > width) break;
    at = next;
  }
  return at;
}

// The start of the shortest end that leaves out everything beyond so many columns.
size_t suffix_in(std::string_view text, int width) {
  size_t at = text.size();
  for (int used = 0; at > 0;) {
    size_t before = previous_utf8(text, at), next = before;
    used += columns_of(decode_utf8(text, next));
    if (used > width) break;
    at = before;
  }
  return at;
}

}  // namespace

std::string clip(std::string_view text, int width) {
  if (columns(text) <= width) return std::string(text);
  if (width <= 0) return "";
  return std::string(text.substr(0, prefix_in(text, width - 1))) + "…";
}

std::string clip_middle(std::string_view text, int width) {
  if (columns(text) <= width) return std::string(text);
  if (width <= 1) return clip(text, width);
  const int left = (width - 1) / 3;
  return std::string(text.substr(0, prefix_in(text, left))) + "…" +
         std::string(text.substr(suffix_in(text, width - 1 - left)));
}

std::string padded(std::string_view text, int width) {
  std::string out = clip(text, width);
  out.append(static_cast<size_t>(std::max(0, width - columns(out))), ' ');
  return out;
}

std::string short_path(const std::string& path) {
  const char* const home = std::getenv("HOME");
  const std::string start = home ? home : "";
  if (start.size() > 1 && path.starts_with(start + "/")) return "~" + path.substr(start.size());
  return path;
}

namespace {

constexpr int kTab = 4;

std::string without_tabs(const std::string& line) {
  std::string out;
  int column = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t from = at;
    const uint32_t c = decode_utf8(line, at);
    const int spaces = c == '\t' ? kTab - column % kTab : 0;
    if (spaces)
      out.append(static_cast<size_t>(spaces), ' ');
    else
      out += line.substr(from, at - from);
    column += spaces ? spaces : columns_of(c);
  }
  return out;
}

// One paragraph, without line breaks.
void wrap_paragraph(std::string_view text, int width, std::vector<std::string>& out) {
  std::string_view rest = text;
  const size_t before = out.size();
  do {
    size_t end = prefix_in(rest, width);
    if (end == rest.size()) break;
    size_t next = end;
    if (const size_t space = rest.substr(0, end + 1).rfind(' '); space != rest.npos && space > 0) {
      end = space, next = space + 1;
    } else if (end == 0) {  // a wide character in one column
      decode_utf8(rest, next);
      end = next;
    }
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(next);
  } while (!rest.empty());
  if (!rest.empty() || out.size() == before) out.emplace_back(rest);
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> out;
  width = std::max(1, width);
  const std::string shown = printable_lines(text);
  for (size_t at = 0; at <= shown.size();) {
    const size_t end = std::min(shown.find('\n', at), shown.size());
    wrap_paragraph(without_tabs(shown.substr(at, end - at)), width, out);
    at = end + 1;
  }
  return out;
}

void Wrapped::set(const std::string& text, int width) {
  if (width != width_ || !text.starts_with(stable_)) {
    stable_.clear();
    stable_lines_ = 0;
    width_ = width;
  }
  lines_.resize(stable_lines_);
  const size_t last = text.rfind('\n');
  if (last != text.npos && last + 1 > stable_.size()) {
    for (std::string& line : wrap(std::string_view(text).substr(stable_.size(), last - stable_.size()), width))
      lines_.push_back(std::move(line));
    stable_ = text.substr(0, last + 1);
    stable_lines_ = lines_.size();
  }
  if (stable_.size() < text.size() || text.empty())
    for (std::string& line : wrap(std::string_view(text).substr(stable_.size()), width))
      lines_.push_back(std::move(line));
}

}  // namespace invar::tui
