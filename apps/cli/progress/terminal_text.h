// How a line is shown to a person: with colours, and short enough for the terminal.
#pragma once

#include <string>
#include <string_view>

namespace invar::cli {

// Set in processes that mpirun started to what the run's own standard output is: "terminal" or
// "file". mpirun gives them a terminal in any case.
inline constexpr const char* kJobOutput = "INVAR_JOB_OUTPUT";
// Whether a person reads this stream (STDOUT_FILENO, STDERR_FILENO).
bool is_terminal(int stream);

enum class Tone { good, bad, doubtful };
// The text in a colour, if this stream (STDOUT_FILENO, STDERR_FILENO) shows any: --color, NO_COLOR,
// TERM=dumb.
std::string painted(std::string_view text, Tone tone, int stream);

// The lines as they fit a terminal of `width` columns: the home folder is ~; in a line that is too
// long digests are cut to sixteen digits, and then long paths lose their middle.
std::string fitted(std::string_view lines, int width, std::string_view home);
// The same for this stream: unchanged in a pipe and with --verbose.
std::string for_stream(std::string_view lines, int stream);

}  // namespace invar::cli
