// What a command gives up before it reads what strangers sent (docs/design/threat-model.md).
#pragma once

#include <string>

#include "generate/options.h"

namespace invar::cli {

// Of a command that computes nothing: it writes nothing, either.
void confine_reader();
// Of a command that runs a model. `output`: a folder that it writes into, besides Invar's cache and
// the temporary folder; "" = none. A GPU's libraries and workers need more than a filter can name:
// then nothing is confined. A model that the user names may have to be downloaded.
void confine_reader(const generate::ModelOptions&, const generate::ExecutionOptions&,
                    const std::string& output = "");

}  // namespace invar::cli
