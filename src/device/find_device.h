// Whether there is a device of a name, without the time that opening it takes.
#pragma once

#include <string>

#include "base/status.h"

namespace invar {

// The errors are those of Device::named() but for what opening alone shows, such as a GPU in
// exclusive use.
Status find_device(const std::string& name);

}  // namespace invar
