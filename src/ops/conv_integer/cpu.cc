// CPU integer convolutions of an instruction set without its extensions.
#include "ops/conv_integer/cpu/extension_rows.h"
