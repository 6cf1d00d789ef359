// Generation and verification for Python: what `invar run` and `invar verify` do, on the same code.
#pragma once

#include <nanobind/nanobind.h>

namespace invar::python {

void add_generation(nanobind::module_&);

}  // namespace invar::python
