// A phase of the work as a bar, as lines or as events.
#pragma once

#include <memory>
#include <string_view>

#include "generate/observer.h"
#include "progress/display.h"

namespace invar::cli {

// `form` is what is shown, never automatic.
std::unique_ptr<generate::Phase> make_phase(std::string_view name, ProgressForm form);

}  // namespace invar::cli
