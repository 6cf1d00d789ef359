// All functions of function_list.h with a float-float route, by that route.
#pragma once

#include "num/erf/erfc_ff.h"
#include "num/functions.h"
#include "num/inverse_hyperbolic/inverse_hyperbolic_ff.h"
#include "num/inverse_trig/inverse_trig_ff.h"
#include "num/root/root_ff.h"
#include "num/tan/tan_ff.h"
