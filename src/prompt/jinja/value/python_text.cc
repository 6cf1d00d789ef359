#include "prompt/jinja/value/python_text.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "prompt/jinja/value/value.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt::jinja {
namespace {

Category category(uint32_t c) {
  const auto ranges = category_ranges();
  const auto at =
      std::partition_point(ranges.begin(), ranges.end(), [c](const CategoryRange& r) { return r.last < c; });
  return at != ranges.end() && at->first <= c ? at->category : Category::Cn;
}

bool has_case(uint32_t c) {
  const Category k = category(c);
  return k == Category::Lu || k == Category::Ll || k == Category::Lt;
}

size_t next(std::string_view s, size_t at) {
  decode_utf8(s, at);
  return at;
}

// Places of white space at the ends.
size_t first_other(std::string_view s, size_t at) {
  while (at < s.size()) {
    size_t end = at;
    if (!is_space(decode_utf8(s, end))) break;
    at = end;
  }
  return at;
}
size_t first_space(std::string_view s, size_t at) {
  while (at < s.size()) {
    size_t end = at;
    if (is_space(decode_utf8(s, end))) break;
    at = end;
  }
  return at;
}

void hex_escape(std::string& out, const char* prefix, uint32_t c, int digits) {
  out += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[c >> shift & 15];
}

}  // namespace

size_t find_text(std::string_view s, std::string_view part, size_t from) {
  constexpr size_t kShort = 32;  // so many comparisons for a byte are no more than Knuth-Morris-Pratt's
  if (from > s.size() || part.size() > s.size() - from) return s.npos;
  if (part.size() <= kShort) {
    const size_t at = s.find(part, from);
    charge(((at == s.npos ? s.size() : at) - from) / kBytesRead);
    return at;
  }
  if (!charge((s.size() - from + part.size()) / kBytesRead)) return s.npos;
  std::vector<uint32_t> border(part.size(), 0);  // of the part's beginnings: how much is their end, too
  for (uint32_t i = 1, n = 0; i < part.size(); border[i++] = n) {
    while (n && part[i] != part[n]) n = border[n - 1];
    n += part[i] == part[n];
  }
  for (size_t i = from, n = 0; i < s.size(); ++i) {
    while (n && s[i] != part[n]) n = border[n - 1];
    n += s[i] == part[n];
    if (n == part.size()) return i + 1 - n;
  }
  return s.npos;
}

size_t find_last_text(std::string_view s, std::string_view part) {
  if (part.empty()) return s.size();
  const std::string back(s.rbegin(), s.rend()), sought(part.rbegin(), part.rend());
  const size_t at = find_text(back, sought);
  charge(s.size() / kBytesRead);
  return at == back.npos ? at : s.size() - at - part.size();
}

int64_t length(std::string_view s) {
  charge(s.size() / kBytesCopied);
  return std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::u32string code_points(std::string_view s) {
  std::u32string out;
  if (!charge(s.size() / kBytesRead)) return out;
  for (size_t at = 0; at < s.size();) out += static_cast<char32_t>(decode_utf8(s, at));
  return out;
}

std::string utf8(std::u32string_view s) {
  std::string out;
  for (const char32_t c : s) append_utf8(out, c);
  return out;
}

bool is_space(uint32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

std::string strip(std::string_view s, std::optional<std::string_view> characters, Side side) {
  std::u32string set = characters ? code_points(*characters) : U"";
  std::sort(set.begin(), set.end());
  if (!charge((s.size() + 16 * set.size()) / kBytesRead)) return {};
  const auto goes = [&](size_t at) {
    const uint32_t c = decode_utf8(s, at);
    return characters ? std::binary_search(set.begin(), set.end(), static_cast<char32_t>(c)) : is_space(c);
  };
  size_t begin = 0, end = s.size();
  if (side != Side::right)
    while (begin < end && goes(begin)) begin = next(s, begin);
  if (side != Side::left)
    while (begin < end && goes(previous_utf8(s, end))) end = previous_utf8(s, end);
  return std::string(s.substr(begin, end - begin));
}

std::vector<std::string> split(std::string_view s, std::optional<std::string_view> separator, int64_t most) {
  std::vector<std::string> parts;
  size_t at = 0;
  if (!separator) {
    charge(s.size() / kBytesRead);
    for (at = first_other(s, 0); at < s.size() && charge(kNewValue); at = first_other(s, at)) {
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
        parts.emplace_back(s.substr(at));
        break;
      }
      const size_t end = first_space(s, at);
      parts.emplace_back(s.substr(at, end - at));
      at = end;
    }
    return parts;
  }
  while (charge(kNewValue)) {
    const size_t end =
        most >= 0 && static_cast<int64_t>(parts.size()) == most ? s.npos : find_text(s, *separator, at);
    parts.emplace_back(s.substr(at, end == s.npos ? end : end - at));
    if (end == s.npos) return parts;
    at = end + separator->size();
  }
  return parts;
}

std::vector<std::string> split_right(std::string_view s, std::optional<std::string_view> separator,
                                     int64_t most) {
  std::vector<std::string> parts;
  size_t end = s.size();
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) == most; };
  if (!separator) {
    charge(s.size() / kBytesRead);
    while (charge(kNewValue)) {
      while (end > 0 &&
             is_space(code_points(s.substr(previous_utf8(s, end), end - previous_utf8(s, end)))[0]))
        end = previous_utf8(s, end);
      if (end == 0) break;
      size_t begin = end;
      if (full()) {
        parts.emplace_back(s.substr(0, end));
        break;
      }
      while (begin > 0) {
        size_t at = previous_utf8(s, begin);
        const size_t before = at;
        if (is_space(decode_utf8(s, at))) break;
        begin = before;
      }
      parts.emplace_back(s.substr(begin, end - begin));
      end = begin;
    }
  } else {
    // The separators from the last on, which are the first of what is read backwards.
    const std::string back(s.rbegin(), s.rend()), sought(separator->rbegin(), separator->rend());
    charge(s.size() / kBytesRead);
    while (charge(kNewValue)) {
      const size_t found = full() ? s.npos : find_text(back, sought, s.size() - end);
      const size_t at = found == s.npos ? found : s.size() - found - sought.size();
      parts.emplace_back(at == s.npos ? s.substr(0, end)
                                      : s.substr(at + separator->size(), end - at - separator->size()));
      if (at == s.npos) break;
      end = at;
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view s, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0;
  charge(s.size() / kBytesRead);
  for (size_t at = 0; at < s.size();) {
    const size_t end = at;
    const uint32_t c = decode_utf8(s, at);
    const bool breaks =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (!charge(kNewValue)) return lines;
    if (c == '\r' && at < s.size() && s[at] == '\n') ++at;
    lines.emplace_back(s.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < s.size()) lines.emplace_back(s.substr(begin));
  return lines;
}

std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t most) {
  std::string out;
  size_t at = 0;
  charge(s.size() / kBytesRead);
  if (from.empty()) {  // between all characters
    for (int64_t n = 0; (most < 0 || n < most) && charge(1 + to.size() / kBytesCopied); ++n) {
      out += to;
      if (at == s.size()) return out;
      const size_t end = next(s, at);
      out += s.substr(at, end - at);
      at = end;
    }
    return out.append(s.substr(at));
  }
  for (int64_t n = 0; most < 0 || n < most; ++n) {
    const size_t found = find_text(s, from, at);
    if (found == s.npos || !charge(1 + to.size() / kBytesCopied)) break;
    out.append(s.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(s.substr(at));
}

int64_t count(std::string_view s, std::string_view part) {
  if (part.empty()) return length(s) + 1;
  int64_t n = 0;
  for (size_t at = find_text(s, part); at != s.npos && charge(1); at = find_text(s, part, at + part.size()))
    ++n;
  return n;
}

Result<std::string> in_case(std::string_view s, Case to) {
  if (!charge(s.size() / kBytesRead)) return std::string();
  std::string out;
  bool inside = false;  // a word, behind its first letter
  for (size_t at = 0; at < s.size();) {
    const uint32_t c = decode_utf8(s, at);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c >= 0x80 && has_case(c)) {
      std::string shown;
      append_utf8(shown, c);
      return not_covered("the case of the letter " + shown +
                         " is changed; only that of ASCII letters is covered");
    }
    const bool up = to == Case::upper || (to != Case::lower && !inside);
    out += letter ? std::string(1, static_cast<char>(up ? c & ~0x20u : c | 0x20u)) : std::string();
    if (!letter) append_utf8(out, c);
    inside = to == Case::capitalize || letter;
  }
  return out;
}

Result<bool> is_class(std::string_view s, std::string_view method) {
  if (!charge(2 * s.size() / kBytesRead)) return false;
  bool any = false;
  for (size_t at = 0; at < s.size();) {
    const uint32_t c = decode_utf8(s, at);
    const Category k = category(c);
    const bool letter = k <= Category::Lo, decimal = k == Category::Nd;
    if (method == "isupper" || method == "islower") {
      if (c >= 0x80 && (has_case(c) || k == Category::Lm || k == Category::Nl || k == Category::So))
        return not_covered(std::string(method) + " of letters beyond ASCII");
      const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
      if (method == "isupper" ? lower : upper) return false;
      any |= upper || lower;
      continue;
    }
    if (c >= 0x80 && (k == Category::No || k == Category::Nl || k == Category::Lo) && method != "isspace" &&
        method != "isalpha" && method != "isdecimal")
      return not_covered(std::string(method) + " of characters beyond ASCII");
    const bool in = method == "isspace"   ? is_space(c)
                    : method == "isalpha" ? letter
                    : method == "isalnum" ? letter || decimal
                                          : decimal;
    if (!in) return false;
    any = true;
  }
  return any;
}

std::string repr_of(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < s.size();) {
    const size_t begin = at;
    const uint32_t c = decode_utf8(s, at);
    const bool plain = (c >= ' ' && c < 0x7F) || (c > 0x7F && category(c) < Category::Zs);
    if (c == '\\' || c == static_cast<uint32_t>(quote))
      (out += '\\') += static_cast<char>(c);
    else if (c == '\n' || c == '\r' || c == '\t')
      (out += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    else if (plain)
      out += s.substr(begin, at - begin);
    else if (c < 0x100)
      hex_escape(out, "\\x", c, 2);
    else
      hex_escape(out, c < 0x10000 ? "\\u" : "\\U", c, c < 0x10000 ? 4 : 8);
  }
  return out + quote;
}

std::string json_string(std::string_view s, bool ensure_ascii) {
  std::string out = "\"";
  for (size_t at = 0; at < s.size();) {
    const size_t begin = at;
    const uint32_t c = decode_utf8(s, at);
    constexpr std::string_view special = "\"\\\n\r\t\f\b", names = "\"\\nrtfb";
    if (const size_t i = c < 0x80 ? special.find(static_cast<char>(c)) : special.npos; i != special.npos)
      (out += '\\') += names[i];
    else if (c < 0x20 || (ensure_ascii && c >= 0x80 && c < 0x10000))
      hex_escape(out, "\\u", c, 4);
    else if (ensure_ascii && c >= 0x10000)
      hex_escape(out, "\\u", 0xD800 + ((c - 0x10000) >> 10), 4),
          hex_escape(out, "\\u", 0xDC00 + ((c - 0x10000) & 0x3FF), 4);
    else
      out += s.substr(begin, at - begin);
  }
  return out + '"';
}

std::string escape_html(std::string_view s) {
  charge(s.size() / kBytesRead);
  std::string out;
  for (const char c : s) {
    const std::string_view named = c == '&'    ? "&amp;"
                                   : c == '<'  ? "&lt;"
                                   : c == '>'  ? "&gt;"
                                   : c == '"'  ? "&#34;"
                                   : c == '\'' ? "&#39;"
                                               : "";
    named.empty() ? out += c : out += named;
  }
  return out;
}

}  // namespace invar::prompt::jinja
