// All functions of function_list.h as lanes compute them.
#pragma once

#include "num/exp/exp.h"
#include "num/function_list.h"
#include "num/sincos/sincos.h"
