// Makes text of unknown origin safe to show on a terminal: names in files, paths, a model's answer.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace invar {

// The text on one line. Visible characters of every script stay. Characters that a terminal would
// obey or hide are escaped: ASCII control characters and bytes that are not UTF-8 as \x1b; other
// control characters, line separators, direction and zero-width characters as \u{202e}. Idempotent.
std::string printable(std::string_view text);
// The same, without the middle of a text that is longer than `longest` bytes.
std::string excerpt(std::string_view text, size_t longest = 160);
// The text on several lines: line breaks and tabs stay, and the invisible characters that scripts
// and emoji need.
std::string printable_lines(std::string_view text);
// Equivalent JSON in which printable() would escape only line breaks.
std::string printable_json(std::string_view json);

// The error's message and its items, one a line.
std::string printable(const Error&);

}  // namespace invar
