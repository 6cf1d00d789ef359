// Text of unknown origin as a person may see it: names in files, paths, a model's answer.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace invar {

// As one line. Visible characters of every script stay; what a terminal would obey or hide is escaped: control characters
// of ASCII and bytes that are no UTF-8 as \x1b; other control characters, line separators, direction and zero-width
// characters as \u{202e}. Applied twice it changes nothing more.
std::string printable(std::string_view text);
// The same; the middle of what is longer than `longest` bytes is left out.
std::string excerpt(std::string_view text, size_t longest = 160);
// As lines: line breaks and tabs stay, and the invisible characters that scripts and emoji are written with.
std::string printable_lines(std::string_view text);
// JSON of the same meaning, in which printable() would escape nothing but line breaks.
std::string printable_json(std::string_view json);

// The error's line and, each on a line of its own, its items.
std::string printable(const Error&);

}  // namespace invar
