// Several GPUs of one host whose kernels read and write each other's memory.
#pragma once

#include "device/device.h"

namespace invar {

// From now on kernels of `from` reach the memory of `to`, if there is a path between the two.
// False: there is none, or they are the same GPU.
bool reach_memory(Device& from, Device& to);

// Makes a graph ready, so that its first replay neither takes memory nor waits for the device.
Status make_ready(Device& device, const Device::Graph& graph);

}  // namespace invar
