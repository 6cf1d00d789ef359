#pragma once

namespace invar::tui {

// What F1 shows.
extern const char* const kHelp;

}  // namespace invar::tui
