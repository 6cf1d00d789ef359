// Shared declarations of the import code of this room.
#pragma once

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// The rules of each file.
void import_dim_propagation(RuleRegistry&);
void import_table(RuleRegistry&);
void import_window_functions(RuleRegistry&);

}  // namespace invar::compiler
