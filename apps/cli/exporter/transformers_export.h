// Models that no recipe describes, exported by the Python package with torch and transformers.
#pragma once

#include <string>

#include "console.h"
#include "generate/options.h"

namespace invar::cli {

// Runs `python -m invar.exporter` for the checkpoint `folder`, checks what it made against torch's
// logits, and moves it into the folder `output`, which has model.onnx then: returns its path.
// python: an interpreter; "": INVAR_PYTHON, else python3. bad_input: the interpreter or a package
// of it is missing, or transformers does not load the model. not_covered: the model cannot be
// traced, or the graph computes something else.
Result<std::string> export_with_transformers(const std::string& folder, const std::string& output,
                                             const std::string& python, Console&);

// What a run opens: the model itself, or where no recipe describes it and the package is there, its
// export, which the user's cache keeps.
Result<generate::ModelOptions> with_export(generate::ModelOptions, Console&);

}  // namespace invar::cli
