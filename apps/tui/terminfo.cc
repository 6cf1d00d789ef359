#include "terminfo.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

namespace invar::tui {

std::string terminal_problem(const char* name) {
  if (!name || !*name) return "TERM is not set";
  int found = 0;
  if (::setupterm(name, STDOUT_FILENO, &found) != OK || found != 1)
    return "TERM=" + std::string(name) + ": no terminal that this system knows";
  if (!cursor_address || !clear_screen) return "TERM=" + std::string(name) + ": it cannot move a cursor";
  return "";
}

}  // namespace invar::tui
