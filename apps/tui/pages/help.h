#pragma once

namespace invar::tui {

// The text of F1.
extern const char* const kHelp;

}  // namespace invar::tui
