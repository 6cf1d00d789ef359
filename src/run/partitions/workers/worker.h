// The life of a worker process: it opens the stages that the run sends it, and computes their
// passes until the run ends.
#pragma once

#include "run/partitions/workers/transport.h"

namespace invar::run {

// An error: the run cannot be understood, or does not answer. What fails in a stage is an answer.
Status work_for(Transport& transport);

}  // namespace invar::run
