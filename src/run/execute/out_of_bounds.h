// Out-of-bounds indices: finds the first one of a call on a device, and names it in errors.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "device/device.h"
#include "kernels/op_contract.h"

namespace invar::run {

// BEFORE "index 7 at [0, 2] of operand 1 is outside -5 ... 4"
Error error_of(const ops::OutOfBounds&, std::span<const ops::View> operands, const std::string& before = "");
// The first out-of-bounds index of a call whose operands are on the device; nullopt if there is
// none.
Result<std::optional<ops::OutOfBounds>> find_out_of_bounds(const ops::OpContract&, const ops::Call&, Device&);
// A kernel reported an out-of-bounds index, but no call of the step has one.
Error unconfirmed_fault_error();

}  // namespace invar::run
