// Ctrl-C and the other signals that end a program.
#pragma once

namespace invar::cli {

// Makes SIGINT and SIGTERM remove the temporary files, say so, and end the process as the signal
// would. A signal that is ignored stays so.
void clean_up_on_signals();

}  // namespace invar::cli
