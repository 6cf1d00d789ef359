// Models that are installed together with this program or module.
#pragma once

#include <string>

namespace invar::generate {

// The folder PREFIX/share/invar/models/NAME, for a model that is called NAME or models/NAME; "": no
// such model is installed. The program is PREFIX/bin/invar, and Python's module lies in
// PREFIX/lib/pythonX/site-packages/invar.
std::string shipped_model(const std::string& model_name);

}  // namespace invar::generate
