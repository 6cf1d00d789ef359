#pragma once

#include <string>

namespace invar::tui {

// Why a terminal of this name cannot be drawn on; "" = it can. Apart from terminal.cc, because the
// header of terminfo makes macros of common words.
std::string terminal_problem(const char* name);

}  // namespace invar::tui
