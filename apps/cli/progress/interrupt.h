// Ctrl-C and the other signals that end a program.
#pragma once

#include <functional>

namespace invar::cli {

// Makes SIGINT and SIGTERM remove the temporary files, say so, and end the process as the signal
// would. A signal that is ignored stays so.
void clean_up_on_signals();

// The next of these signals calls `first`, on a thread of its own, and ends nothing; the one after
// it ends the process. None: every signal does.
void on_next_signal(std::function<void()> first);

}  // namespace invar::cli
