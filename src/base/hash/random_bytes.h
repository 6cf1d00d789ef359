// Random bytes of the operating system, which nobody can predict: keys and salts. Never arithmetic.
#pragma once

#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar {

// 32 of them. Errors: internal, where the system gives none.
Result<Digest> random_bytes();

}  // namespace invar
