// Products that gain from instructions beyond an instruction set (cmake/isa.cmake, extensions).
#include "ops/matmul/cpu/exact16_rows.h"
