// The life of a worker process: it opens the stages that the run sends it, and computes their
// passes until the run ends.
#pragma once

#include "run/partitions/workers/transport.h"

namespace invar::run {

// `model`: the checkpoint's folder on this host; "": where the run has it. An error: the run cannot
// be understood, or does not answer. What fails in a stage is an answer.
Status work_for(Transport& transport, const std::string& model);

}  // namespace invar::run
