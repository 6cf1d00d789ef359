// Properties of this machine that the system gives.
#pragma once

#include <string>

#include "device/device.h"

namespace invar {

// The system's name of its processor, or of its architecture where it has none.
std::string processor();
// The same with what tells two processors of one name apart, where the system says it.
std::string exact_processor();
std::string describe(const Device::Info&);

}  // namespace invar
