// An element of a tensor for people: its bits, and its value in decimal.
#pragma once

#include <string>
#include <string_view>

#include "base/dtype.h"

namespace invar::dispute {

// "3f8ccccd (1.1)"; the bytes are little-endian, size_of(dtype) of them.
std::string element_text(DType dtype, std::string_view bytes);
// The first element that differs between two rows of equal length; -1: none.
int64_t first_difference(DType dtype, std::string_view a, std::string_view b);
// The bytes of an element of a row.
std::string_view element_of(DType dtype, std::string_view row, int64_t element);

}  // namespace invar::dispute
