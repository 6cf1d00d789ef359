// GroupQueryAttention of com.microsoft.
#pragma once

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

Status group_query_attention(NodeView&);

}  // namespace invar::compiler
