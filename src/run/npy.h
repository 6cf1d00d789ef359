// Tensors in NumPy's .npy files: one array, little-endian, row-major.
#pragma once

#include <string>

#include "base/status.h"
#include "run/function.h"

namespace invar::run {

Result<Tensor> read_npy(const std::string& path);
// A file of version 1.0. bf16, which NumPy does not have, is in files what ml_dtypes makes of it:
// pairs of bytes.
std::string npy_of(const Tensor&);

}  // namespace invar::run
