// Model folders near one that is none.
#pragma once

#include <string>

namespace invar::cli {

// The hint of an error of the kind no_model: the folders of checkpoints in `model` or, by their
// names, next to it; "" where there are none.
std::string near_models(const std::string& model);

}  // namespace invar::cli
