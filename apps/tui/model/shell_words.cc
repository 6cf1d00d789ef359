#include "model/shell_words.h"

namespace invar::tui {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
}

// A word without the spaces around it; `at` moves behind it.
Result<std::string> word_at(std::string_view text, size_t& at) {
  std::string word;
  while (at < text.size() && !is_space(text[at])) {
    const char c = text[at++];
    if (c == '\'') {
      const size_t end = text.find('\'', at);
      if (end == text.npos) return bad_input("the quote ' is not closed");
      word += text.substr(at, end - at);
      at = end + 1;
    } else if (c == '"') {
      for (;; ++at) {
        if (at >= text.size()) return bad_input("the quote \" is not closed");
        if (text[at] == '"') break;
        const bool escapes = text[at] == '\\' && at + 1 < text.size() &&
                             std::string_view("\"\\$`").find(text[at + 1]) != std::string_view::npos;
        word += text[escapes ? ++at : at];
      }
      ++at;
    } else if (c == '\\') {
      if (at >= text.size()) return bad_input("nothing follows the \\ at the end");
      word += text[at++];
    } else {
      word += c;
    }
  }
  return word;
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0;;) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at >= text.size()) return words;
    INVAR_TRY(std::string word, word_at(text, at));
    words.push_back(std::move(word));
  }
}

std::string shell_quoted(std::string_view word) {
  bool plain = !word.empty();
  for (const char c : word) plain = plain && is_plain(c);
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_quoted(word);
  return out;
}

}  // namespace invar::tui
