// Finds a device by name without the time that opening it takes, and opens it in the background.
#pragma once

#include <future>
#include <string>

#include "base/status.h"

namespace invar {

// The errors are those of Device::named() but for what opening alone shows, such as a GPU in
// exclusive use.
Status find_device(const std::string& name);

// A note about an NVIDIA GPU that a computation on the CPU leaves idle; "" where the system has
// none. No GPU is opened.
std::string idle_gpu();

// Starts a GPU while its caller does something else: what a process does once for a device takes a
// quarter of a second. Nothing is reported; Device::named() will. The future waits when it goes.
std::future<void> start_device(const std::string& name);

}  // namespace invar
