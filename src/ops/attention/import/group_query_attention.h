// GroupQueryAttention of com.microsoft.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

Status group_query_attention(NodeView&);

}  // namespace invar::compiler
