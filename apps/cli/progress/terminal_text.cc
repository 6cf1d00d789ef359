#include "progress/terminal_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "help/command_text.h"
#include "progress/display.h"

namespace invar::cli {
namespace {

constexpr size_t kDigest = 64, kShown = 16;  // hexadecimal digits
constexpr int kShortestPath = 24;            // columns that a path keeps

bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Parts of a line: words and what is between them.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (const char c : line) {
    if (words.empty() || (c == ' ') != (words.back().back() == ' ')) words.emplace_back();
    words.back() += c;
  }
  return words;
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += word;
  return line;
}

void shorten_digests(std::string& word) {
  size_t digits = 0;
  for (size_t i = 0; i <= word.size(); ++i) {
    if (i < word.size() && is_digit(word[i])) {
      ++digits;
      continue;
    }
    if (digits == kDigest) {
      word.replace(i - kDigest + kShown, kDigest - kShown, "…");
      i -= kDigest - kShown - std::string_view("…").size();
    }
    digits = 0;
  }
}

// Whole characters of UTF-8: a cut never divides one.
bool begins(char c) {
  return (c & 0xC0) != 0x80;
}

void shorten_path(std::string& word, int most) {
  const int keep = (std::max(most, kShortestPath) - 1) / 2;
  if (columns(word) <= 2 * keep + 1) return;
  size_t head = 0, tail = word.size();
  for (int n = 0; head < word.size(); ++head)
    if (begins(word[head]) && n++ == keep) break;
  for (int n = 0; n < keep && tail > head;)
    if (begins(word[--tail])) ++n;
  word = word.substr(0, head) + "…" + word.substr(tail);
}

std::string fitted_line(std::string_view line, int width, std::string_view home) {
  std::vector<std::string> words = words_of(line);
  if (!home.empty() && home != "/")
    for (std::string& word : words)
      if (word.starts_with(std::string(home) + "/")) word.replace(0, home.size(), "~");
  if (columns(joined_words(words)) > width) std::ranges::for_each(words, shorten_digests);
  for (std::string& word : words) {
    const int over = columns(joined_words(words)) - width;
    if (over <= 0) break;
    if (word.find('/') != word.npos && columns(word) > kShortestPath)
      shorten_path(word, columns(word) - over);
  }
  return joined_words(words);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool is_terminal(int stream) {
  return ::isatty(stream) == 1 && (stream != STDOUT_FILENO || variable(kJobOutput) != "file");
}

std::string painted(std::string_view text, Tone tone, int stream) {
  const ColorUse use = display().color;
  const bool shown = use == ColorUse::always ||
                     (use == ColorUse::automatic && is_terminal(stream) && variable("NO_COLOR").empty() &&
                      variable("TERM") != "dumb" && !variable("TERM").empty());
  if (!shown) return std::string(text);
  const char* const code = tone == Tone::good ? "32" : tone == Tone::bad ? "31" : "33";
  return std::string("\033[1;") + code + "m" + std::string(text) + "\033[0m";
}

std::string fitted(std::string_view lines, int width, std::string_view home) {
  std::string out;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    out += fitted_line(lines.substr(0, end), width, home);
    if (end < lines.size()) out += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

std::string for_stream(std::string_view lines, int stream) {
  if (!is_terminal(stream) || display().verbose) return std::string(lines);
  return fitted(lines, terminal_width(), variable("HOME"));
}

}  // namespace invar::cli
