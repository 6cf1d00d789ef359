// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

void import_losses(RuleRegistry&);

}  // namespace invar::compiler
