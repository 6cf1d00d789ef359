// Eager execution: computes one operation on tensors at once, as a plan of one node would.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/attributes.h"
#include "base/thread_pool.h"
#include "device/memory.h"
#include "kernels/op_contract.h"

namespace invar::run {

// Device memory that calls leave to later calls, which may need as much.
struct EagerMemory {
  Allocation shared, fault;
};

// Computes op(in) into out, which exists and overlaps no operand. All are row-major on the host or
// on the given device, whose queue is waited for. attrs: without numerics and version. isa: "" =
// the best here. Errors name the operation.
Status run_operation(const std::string& op, const Attributes& attrs, std::span<const ops::View> in,
                     const ops::View& out, const std::string& isa, Pool&,
                     const std::shared_ptr<Device>& device = {}, EagerMemory* device_memory = nullptr);

}  // namespace invar::run
