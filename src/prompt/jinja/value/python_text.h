// Python's methods of str, for UTF-8. Positions and lengths count code points. Each function
// charges the meter of value.h for the bytes that it reads; a result is of no use where that is
// exhausted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::prompt::jinja {

int64_t length(std::string_view s);
// std::string_view's find and rfind, in linear time.
size_t find_text(std::string_view s, std::string_view part, size_t from = 0);
size_t find_last_text(std::string_view s, std::string_view part);
std::u32string code_points(std::string_view s);
std::string utf8(std::u32string_view s);
bool is_space(uint32_t c);  // str.isspace

enum class Side { both, left, right };
// Without `characters` it strips white space.
std::string strip(std::string_view s, std::optional<std::string_view> characters, Side = Side::both);
// Without a separator it splits at runs of white space. most < 0: everywhere.
std::vector<std::string> split(std::string_view s, std::optional<std::string_view> separator, int64_t most);
std::vector<std::string> split_right(std::string_view s, std::optional<std::string_view> separator,
                                     int64_t most);
std::vector<std::string> split_lines(std::string_view s, bool keep_ends);
std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t most);
int64_t count(std::string_view s, std::string_view part);

enum class Case { upper, lower, title, capitalize };
// Letters beyond ASCII that have a case are refused: no table here is the one of every Python.
Result<std::string> in_case(std::string_view s, Case);
// isupper, islower, isalpha, isdigit, isalnum, isspace, isnumeric, isdecimal, istitle refused.
Result<bool> is_class(std::string_view s, std::string_view method);

std::string repr_of(std::string_view s);
// A string literal of JSON as json.dumps writes it.
std::string json_string(std::string_view s, bool ensure_ascii);
std::string escape_html(std::string_view s);

}  // namespace invar::prompt::jinja
