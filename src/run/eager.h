// One operation on tensors, at once: what a plan of one node computes, without a plan.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/attributes.h"
#include "base/thread_pool.h"
#include "kernels/kernel.h"
#include "run/execute/memory.h"

namespace invar::run {

// What calls on a device leave for those behind them, which may need as much.
struct OnceMemory {
  Block shared, fault;
};

// Computes op(in) into out, which exists and overlaps no operand; all lie row-major on the host, or on the device where one is
// given, whose queue is waited for. attrs: without numerics and version. isa: "" = the best here. Errors name the operation.
Status once(const std::string& op, const Attrs& attrs, std::span<const ops::View> in, const ops::View& out,
            const std::string& isa, Pool&, const std::shared_ptr<Device>& device = {},
            OnceMemory* of_device = nullptr);

}  // namespace invar::run
