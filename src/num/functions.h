// All functions of function_list.h as lanes compute them.
#pragma once

#include "num/arc/arc.h"
#include "num/arc/atan2.h"
#include "num/exp/exp.h"
#include "num/function_list.h"
#include "num/hyperbolic_inverse/asinh.h"
#include "num/hyperbolic_inverse/atanh.h"
#include "num/log/log.h"
#include "num/log/log10.h"
#include "num/log/log1p.h"
#include "num/log/log2.h"
#include "num/root/cbrt.h"
#include "num/root/rsqrt.h"
#include "num/root/sqrt.h"
#include "num/sincos/sincos.h"
#include "num/sinpi/sinpi.h"
#include "num/tan/tan.h"
