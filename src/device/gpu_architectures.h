// Which GPUs a build has code for, and which one is here whether or not the build can use it.
#pragma once

#include <string>
#include <string_view>

namespace invar {

// Whether code for `architectures`, a list as CMake's of CUDA ("80-real 90 75-virtual"), runs on a
// GPU of a compute capability (90 for 9.0). A list of other words is not judged: true.
bool has_code(std::string_view architectures, int compute);

// The capabilities in such a list, for people: "8.0, 9.0 and PTX of 7.5".
std::string capabilities(std::string_view architectures);

// The first NVIDIA GPU that the driver lists in `folder`; "" where there is none.
std::string gpu_of_driver(const std::string& folder = "/proc/driver/nvidia/gpus");

}  // namespace invar
