// Words as a POSIX shell splits them: spaces, '...', "..." and backslashes. Nothing is expanded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::tui {

// Errors: a quote that is not closed, a backslash at the end.
Result<std::vector<std::string>> split_words(std::string_view text);
// One word that split_words() reads as `word`, and that is safe to paste into a shell.
std::string shell_quoted(std::string_view word);
std::string joined(const std::vector<std::string>& words);

}  // namespace invar::tui
