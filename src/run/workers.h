// Several processes for one session (partitions/workers): what the command line needs of them.
#pragma once

#include "run/partitions/workers/worker.h"
