// Groups of operations that a GPU computes together.
#pragma once

#include <span>

#include "device/device.h"
#include "kernels/op_contract.h"

namespace invar::ops {

// Different operations, none of which depends on another, with kernels of their own for all
// together, which read what they share once. The bits are those of the operations one by one.
struct GpuGroup {
  std::span<const std::string_view> ops;                 // these, or the first two or more of them
  bool (*fits)(std::span<const Call* const>);            // whether it can take these calls
  size_t (*shared_bytes)(std::span<const Call* const>);  // bytes of Call::shared of the first
  void (*enqueue)(std::span<const Call* const>, Stream);
};

// The group that starts with an operation. Null: none in this build.
const GpuGroup* find_group(std::string_view first);

// Makes a group known: a static beside its kernels.
struct RegisteredGroup {
  explicit RegisteredGroup(const GpuGroup& group);
};

}  // namespace invar::ops
