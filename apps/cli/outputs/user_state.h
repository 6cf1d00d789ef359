// State of the user on this machine from one command to the next, in $XDG_STATE_HOME/invar or else
// ~/.local/state/invar: the path of the last receipt, the lines typed in `invar chat`. Nobody else
// can read it (folders 0700, files 0600). A folder that cannot be written is no error.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace invar::cli {

// The file of this name there; "" where neither XDG_STATE_HOME nor HOME is set.
std::string state_file(const std::string& name);

// Notes the receipt that this command has written, for --last.
void remember_receipt(const std::string& path);
// The last receipt. bad_input: none was noted, or it is gone; the message names the note's file.
Result<std::string> last_receipt();

// The lines of a file, the newest `most`; none where it is not there, or not this user's own.
std::vector<std::string> remembered_lines(const std::string& file, size_t most);
// Adds a line at the end.
void remember_line(const std::string& file, const std::string& line);
// Replaces the content.
void remember_lines(const std::string& file, const std::vector<std::string>& lines);

}  // namespace invar::cli
