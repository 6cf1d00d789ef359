// A model -> what a receipt of it binds, without computing anything.
#include "generate/cache/task_cache.h"
#include "generate/encoder/inputs.h"
#include "generate/model/model_folder.h"
#include "generate/tensors/tensor_function.h"
#include "generate/verify/verify.h"
#include "receipt/seal.h"

namespace invar::generate {

// A task folder may be damaged, so the plan is compiled from the checkpoint here and now.
Result<receipt::Receipt> describe_model(const ModelOptions& model, Observer& observer) {
  INVAR_TRY(const ModelLocation location,
            obtain({model.model_name, model.revision, model.offline}, observer));
  const auto folder = open_model(location);
  Observer nobody;
  if (!folder && EncoderInputs::open(location, {}, nobody)) {
    INVAR_TRY(const CompiledModel compiled, prepare(location, model, observer, CachePolicy::none));
    return describe_program(compiled.plan, location.name);
  }
  if (!folder) return folder.error();
  INVAR_TRY(const CompiledModel compiled, prepare(location, model, observer, CachePolicy::none));
  return receipt::describe(folder->identity, compiled.plan);
}

}  // namespace invar::generate
