// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

void import_losses(RuleRegistry&);

}  // namespace invar::compiler
