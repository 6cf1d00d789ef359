// sqrt of binary32 is an operation of IEEE 754 and of every lane file (num/lane/lane.h): correctly
// rounded by the processor, which `invar_prove sqrt` shows on every input as it does for the others
// (docs/evidence/functions.md).
#pragma once

#include "num/lane/lane.h"
