#include "generate/model/model.h"

#include <utility>

#include "num/env.h"
#include "receipt/seal.h"

namespace invar::generate {

Result<std::shared_ptr<Model>> Model::open(ModelLocation location, ModelOptions options) {
  const num::ArithmeticEnv env;
  INVAR_TRY(ModelFolder folder, open_model(location));
  if (!options.name.empty()) folder.identity.name = options.name;
  return std::make_shared<Model>(Model{std::move(options), std::move(location), std::move(folder)});
}

Result<std::shared_ptr<Model>> Model::for_prompt(std::shared_ptr<Model> model, int64_t tokens) {
  const bool wanted = model->folder.is_long(tokens);
  if (model->options.long_context == wanted) return model;
  if (!model->options.plan.empty())
    return not_covered("a prompt of " + std::to_string(tokens) + " tokens has another program than one of " +
                       std::to_string(model->folder.original_context) + ": leave --plan out");
  ModelOptions options = model->options;
  options.long_context = wanted;
  return open(model->location, std::move(options));
}

Status Model::compile(Observer& observer, CachePolicy policy, const TensorDigests* presumed) {
  INVAR_TRY(compiled, prepare(location, options, observer, policy, presumed));
  INVAR_TRY(described, receipt::describe(folder.identity, compiled.plan));
  return {};
}

}  // namespace invar::generate
