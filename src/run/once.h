// One operation on tensors, at once: what a plan of one node computes, without a plan.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/attrs.h"
#include "base/pool.h"
#include "ops/kernel.h"

namespace invar::run {

// Computes op(in) into out, which exists and overlaps no operand; all lie row-major on the host, or on the device where one is
// given, whose queue is waited for. attrs: without numerics and version. isa: "" = the best here. Errors name the operation.
Status once(const std::string& op, const Attrs& attrs, std::span<const ops::View> in, const ops::View& out,
            const std::string& isa, Pool&, const std::shared_ptr<Device>& device = {});

}  // namespace invar::run
