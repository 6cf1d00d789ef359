#include "pages/help.h"

namespace invar::tui {

const char* const kHelp =
    "Everywhere\n"
    "  F1           this help (? where nothing is typed)\n"
    "  F2 F3 F4     form, run, receipts; Ctrl-N and Ctrl-P go to the next and the last\n"
    "  F5  Ctrl-R   run what the form says\n"
    "  F6  Ctrl-X   stop what runs; once more ends it at once\n"
    "  Ctrl-C       stop what runs; leave where nothing runs\n"
    "  F10  Ctrl-Q  leave\n"
    "  mouse        press tabs, fields, keys at the bottom; the wheel scrolls. Hold Shift to select text.\n"
    "\n"
    "Form\n"
    "  Tab ↑ ↓      next and previous field\n"
    "  ← →  Space   another choice; Enter lists them\n"
    "  Enter        on a model, file or folder: a list to choose from; in the prompt: a new line\n"
    "  Ctrl-A E     start and end of the line; Ctrl-K U W erase to the end, to the start, a word\n"
    "  F8           reset the form; once more brings it back\n"
    "\n"
    "Run\n"
    "  Tab          answer, log or phases: what the arrow keys scroll, and what a small terminal shows\n"
    "  v            verify the receipt: compute it again, here\n"
    "  e            back to the form\n"
    "  chat         type and press Enter; /reset forgets, /system TEXT sets the system message, /save FILE "
    "writes the messages, /quit ends the conversation\n"
    "\n"
    "Receipts\n"
    "  ↑ ↓          choose a receipt; Enter shows all of it\n"
    "  v            verify it: compute it again, every step compared\n"
    "  c            check its structure, hashes and signatures alone\n"
    "  o            another folder; r reads the folder again\n"
    "\n"
    "The form makes a command line of invar, which is shown below it: what runs here runs the same in a "
    "script. "
    "Text of a model or of a receipt moves no cursor here: control characters are escaped.\n";

}  // namespace invar::tui
