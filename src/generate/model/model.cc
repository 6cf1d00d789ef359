#include "generate/model/model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "num/env.h"
#include "receipt/seal.h"
#ifdef INVAR_COMPILER
#include "checkpoint/checkpoint.h"
#include "hub/hub.h"
#endif

namespace invar::generate {

// receipt.44
static Status name_adapter(const std::string& folder, receipt::ModelIdentity& identity) {
#ifndef INVAR_COMPILER
  (void)identity;
  return not_covered("adapter " + folder + ": this build opens no adapter");
#else
  INVAR_TRY(identity.adapter, checkpoint::adapter_digest(folder));
  std::error_code ec;
  std::filesystem::path path = std::filesystem::weakly_canonical(folder, ec);
  if (!path.has_filename()) path = path.parent_path();
  identity.adapter_name = hub::repository_of(path.string());
  if (identity.adapter_name.empty()) identity.adapter_name = path.filename().string();
  return {};
#endif
}

Result<std::shared_ptr<Model>> Model::open(ModelLocation location, ModelOptions options) {
  const num::ArithmeticEnv env;
  INVAR_TRY(ModelFolder folder, open_model(location));
  if (!options.name.empty()) folder.identity.name = options.name;
  if (!options.adapter.empty()) {
    INVAR_CHECK_OK(name_adapter(options.adapter, folder.identity));
  }
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

// A plan that was given has the adapter that was given.
static Status check_adapter_of_plan(const plan::Plan& plan, const ModelOptions& options) {
  if (options.plan.empty() || !plan.source) return {};
  const bool has = std::ranges::any_of(
      plan.source->tensors, [](const plan::Weight& w) { return w.name.starts_with("base_model.model."); });
  if (has && options.adapter.empty())
    return bad_input(options.plan + ": it was compiled with an adapter: give its folder with --adapter");
  if (!has && !options.adapter.empty())
    return bad_input(options.plan + ": it was compiled without an adapter: leave --plan or --adapter out");
  return {};
}

Status Model::compile(Observer& observer, CachePolicy policy, const TensorDigests* presumed) {
  INVAR_TRY(compiled, prepare(location, options, observer, policy, presumed));
  INVAR_CHECK_OK(check_adapter_of_plan(compiled.plan, options));
  INVAR_TRY(described, receipt::describe(folder.identity, compiled.plan));
  return {};
}

}  // namespace invar::generate
