// The subject of traces and disputes: a receipt, and its model as it is found and compiled here.
#include "base/text/display.h"
#include "generate/engine/execution.h"
#include "generate/model/find_receipt_model.h"
#include "generate/model/model.h"
#include "generate/settings/structured.h"
#include "generate/verify/verify.h"
#include "receipt/seal.h"

namespace invar::generate {

static constexpr size_t kTokenShown = 40;  // bytes of its text

Result<DisputedRun> open_disputed(std::string_view text, const std::string& name, const ModelOptions& model,
                                  const ExecutionOptions& execution, Observer& observer) {
  receipt::Receipt claimed;
  INVAR_TRY(const auto findings, receipt::validate(text, name, &claimed));
  if (!findings.empty())
    return bad_input(name + ": not a valid receipt: " + receipt::text_of(findings.front()) +
                     "; `invar validate` names everything");
  if (claimed.format == receipt::kTensorFormat)
    return not_covered(name + ": a receipt of tensors, which only `invar verify` computes again");
  if (!claimed.withheld.empty())
    return not_covered(name +
                       ": its prompt is withheld (receipt.27), so nothing can be computed again: ask for the "
                       "receipt that it was made from, which has the same hash");
  const OperationSet set = operation_set_from(claimed.operation_set).value();  // validate knows it
  if (set != OperationSet::reproducible)
    return not_covered(name + ": its operation set is " + claimed.operation_set +
                       ", whose bits are not fixed, so nobody can say which of two results is right");
  INVAR_TRY(const FoundModel found, find_model(model, claimed, observer));
  ModelOptions options = model;
  INVAR_TRY(options.adapter, find_adapter(model, claimed));
  if (options.plan.empty()) options.operation_set = set, options.profile = profile_from(claimed.profile);
  const auto prompt_tokens = static_cast<int64_t>(claimed.prompt_tokens.size());
  INVAR_TRY(std::shared_ptr<Model> opened, Model::open(found.location, std::move(options)));
  if (model.plan.empty()) {
    INVAR_TRY(opened, Model::for_prompt(std::move(opened), prompt_tokens));
  }
  INVAR_CHECK_OK(opened->compile(observer, CachePolicy::none));
  const ModelFolder& folder = opened->folder;
  CompiledModel& compiled = opened->compiled;
  INVAR_TRY(receipt::Receipt mine, receipt::describe(folder.identity, compiled.plan, claimed.format));
  const int64_t context = folder.context_of(prompt_tokens);
  if (static_cast<int64_t>(claimed.continued().size() + claimed.tokens.size()) > context)
    return bad_input(name + ": output.tokens: with the prompt more than the " + std::to_string(context) +
                     " positions of the model");
  DisputedRun run{{}, receipt::compare_model(claimed, mine), {}, compiled.temporary, compiled.hashed};
  run.text_of = [opened](int32_t token) {
    const prompt::Tokenizer& tokenizer = opened->folder.tokenizer;
    const bool known = token >= 0 && token < tokenizer.vocab_size();
    return known ? '"' + excerpt(tokenizer.decode(std::vector{token}), kTokenShown) + '"' : std::string();
  };
  INVAR_CHECK_OK(bind_constraint(folder, claimed.sampling.processors));
  run::Options how = session_options(execution, 1);
  how.hashed = run.hashed.get();
  INVAR_TRY(run.subject,
            dispute::subject_of(std::move(claimed), mine, std::move(compiled.plan), compiled.folder, how));
  return run;
}

}  // namespace invar::generate
