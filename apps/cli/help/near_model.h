// Model folders near one that is none.
#pragma once

#include <string>
#include <string_view>

namespace invar::cli {

// What an error about a model, "model NAME: ...", has for a hint: the folders of checkpoints in
// NAME or, by their names, beside it; "" where there are none.
std::string near_models(std::string_view message);

}  // namespace invar::cli
