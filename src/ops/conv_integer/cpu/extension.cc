// Compiled once per extension of an instruction set; cpu.cc has these rows for the set itself.
#include "ops/conv_integer/cpu/extension_rows.h"
