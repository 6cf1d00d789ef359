// Calls of single operations for Python, prepared once and found again by their attributes and the
// types of their operands.
#pragma once

#include <nanobind/nanobind.h>

namespace invar::python {

void add_operations(nanobind::module_&);

}  // namespace invar::python
