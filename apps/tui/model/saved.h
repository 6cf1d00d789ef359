// The form of the last run, kept in the user's configuration folder.
#pragma once

#include <string>

#include "base/status.h"
#include "model/form.h"

namespace invar::tui {

// $XDG_CONFIG_HOME/invar/tui.json, or that of ~/.config; "" where neither is known.
std::string saved_form_path();
std::string form_text(const Form&);
// Reads a form; a field that the text lacks keeps its initial value.
Form parse_form(const std::string& text);
// The saved form, or the initial one.
Form load_form(const std::string& path);
// Readable by the user alone: a prompt may be private.
Status save_form(const std::string& path, const Form&);

}  // namespace invar::tui
