// A language model: folder, tokenizer, templates and program. It is read once; requests are checked
// against it, and engines run it.
#pragma once

#include <memory>

#include "base/status.h"
#include "generate/cache/task_cache.h"
#include "generate/model/model_folder.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "receipt/receipt.h"

namespace invar::generate {

// Nothing changes it once compile() has returned, so that engines and requests may share it.
struct Model {
  // Finds the model and reads its folder; the weights are not touched.
  static Result<std::shared_ptr<Model>> open(ModelOptions, Observer&);
  // The same of one that is found already.
  static Result<std::shared_ptr<Model>> open(ModelLocation, ModelOptions);
  // The same of a model with an adapter that requests call `name`; bad_input: it is no such name.
  // `module`: NAME=FOLDER or NAME=ORG/NAME, as a server is told.
  static Result<std::shared_ptr<Model>> open_with_adapter(ModelLocation, ModelOptions,
                                                          const std::string& module, Observer&);
  // The model whose program a prompt of so many tokens has: this one, or with LongRoPE another of
  // the same folder (decoder.29), which is not compiled. not_covered: options.plan is of short
  // prompts.
  static Result<std::shared_ptr<Model>> for_prompt(std::shared_ptr<Model>, int64_t tokens);
  // Finds or makes the plan. presumed: see prepare().
  Status compile(Observer&, CachePolicy = CachePolicy::use, const TensorDigests* presumed = nullptr);
  bool is_compiled() const { return !compiled.plan.nodes.empty(); }

  ModelOptions options;
  ModelLocation location;
  ModelFolder folder;
  CompiledModel compiled = {};
  receipt::Receipt described = {};  // the fields of model and program of every receipt
};

}  // namespace invar::generate
