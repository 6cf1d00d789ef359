// Tensors in NumPy's .npy files: one array, little-endian, row-major.
#pragma once

#include <string>

#include "base/status.h"
#include "run/function.h"

namespace invar::cli {

Result<run::Tensor> read_npy(const std::string& path);
// A file of version 1.0. bf16, which NumPy does not have, is written as its 16-bit words.
std::string npy_of(const run::Tensor&);

}  // namespace invar::cli
