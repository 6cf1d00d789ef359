// Engines: the plan and the weights that are loaded once, and the receipt of every answer.
#include "generate/engine/engine_impl.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash/random_bytes.h"
#include "device/find_device.h"
#include "generate/engine/execution.h"
#include "generate/model/find_receipt_model.h"
#include "generate/requests/bound_input.h"
#include "generate/requests/receipt_file.h"
#include "num/env.h"
#include "receipt/seal.h"

namespace invar::generate {

Status Engine::Impl::load(const EngineOptions& wanted, int64_t sequences, int64_t positions,
                          Observer& observer) {
  const auto loading = observer.phase("load");
  const auto open = [&]() -> Result<run::Session> {
    run::Options options = session_options(execution, positions, sequences);
    options.hashed = model->compiled.hashed.get();
    options.goes_back = drafter != nullptr;
    if (drafter && drafter->reads_hidden()) options.hidden = hidden_value(model->compiled.plan);
    options.load_progress = bytes_of(*loading);
    options.progress = [this](int64_t done, int64_t total) {
      if (prefilling) prefilling->progress(done, total, "tokens");
    };
    return run::Session::open(model->compiled.plan, model->compiled.folder, options);
  };
  auto opened = open();
  if (const CompiledModel& c = model->compiled;
      !opened && opened.error().code == Code::failed && c.cached && c.has_copies) {
    // The copies in the task folder are damaged, which says nothing about the checkpoint.
    observer.note("damaged", opened.error().message + "; made anew");
    INVAR_CHECK_OK(model->compile(observer, CachePolicy::replace));
    opened = open();
  }
  if (!opened && opened.error().code == Code::not_covered && sequences > 1 &&
      !execution.kv_cache_memory_bytes)
    return not_covered("--batch-size " + std::to_string(wanted.batch_size) + ": " + opened.error().message +
                       ": leave --batch-size out");
  INVAR_TRY(session, std::move(opened));
  open_pool();
  loading->done(model->location.name + ", weights " + to_hex(model->described.weights).substr(0, 16));
  if (const std::string& whole = model->folder.identity.text_of; !whole.empty())
    observer.note("model",
                  "of " + whole + " the text model alone is used: pictures, sound and video are not taken");
  for (const std::string& lacks : model->folder.missing) observer.note("folder", lacks);
  report_threads(session->threads(), execution, observer);
  if (execution.device == "cpu" && !execution.cpu_only && execution.workers.empty())
    if (const std::string idle = idle_gpu(); !idle.empty()) observer.note("device", "cpu; " + idle);
  remember_checkpoint(model->described.weights, model->location.path());
  if (!model->options.adapter.empty()) remember_checkpoint(model->described.adapter, model->options.adapter);
  return {};
}

void Engine::Impl::forget_all() {
  held.clear(), memory_user = nullptr;
  if (pool) pool->clear();
}

void Engine::Impl::open_pool() {
  const receipt::Receipt& of = model->described;
  Sha256 root;
  root.update(of.program.data(), of.program.size()).update(of.weights.data(), of.weights.size());
  pool.emplace(*session, root.finish(), is_reproducible());
  plan_digest = plan::digest(model->compiled.plan);
}

Status Engine::Impl::take_program_of(const Request& request, Observer& observer) {
  INVAR_TRY(std::shared_ptr<Model> wanted,
            Model::for_prompt(model, static_cast<int64_t>(request.tokens.size())));
  if (wanted == model && session) return {};
  if (!wanted->is_compiled()) {
    INVAR_CHECK_OK(wanted->compile(observer));
  }
  const int64_t positions = session ? session->capacity() : request.positions();
  forget_all();
  pool.reset(), session.reset();  // frees its memory first
  const auto before = std::exchange(model, std::move(wanted));
  const Status loaded = load({}, 1, positions, observer);
  if (loaded) return {};
  model = before;
  INVAR_CHECK_OK(load({}, 1, positions, observer));
  return loaded;
}

// The model whose program all these requests have.
static Result<std::shared_ptr<Model>> model_for(std::shared_ptr<Model> model,
                                                std::span<const Request> requests) {
  const Request* first = nullptr;
  const auto size = [](const Request& r) { return static_cast<int64_t>(r.tokens.size()); };
  for (const Request& r : requests) {
    if (r.skipped()) continue;
    if (!first) first = &r;
    if (model->folder.is_long(size(r)) != model->folder.is_long(size(*first)))
      return not_covered("a prompt of " + std::to_string(size(*first)) + " tokens and one of " +
                         std::to_string(size(r)) + ": LongRoPE has other factors beyond " +
                         std::to_string(model->folder.original_context) +
                         " tokens, so these prompts have two programs: answer them in two runs");
  }
  return first ? Model::for_prompt(std::move(model), size(*first)) : model;
}

Status Engine::Impl::open_drafter(const EngineOptions& options, int64_t positions, Observer& observer) {
  const std::string& how = execution.speculate;
  if (how.empty()) return {};
  if (options.batch_size > 1)
    return not_covered(
        "--speculate " + how +
        ": drafts are for one prompt at a time, and a batch computes several: leave one of --speculate "
        "and --batch-size out");
  if (model->compiled.plan.operation_set != OperationSet::reproducible)
    return not_covered("--speculate " + how +
                       ": a step of several tokens has the bits of single steps in a reproducible program "
                       "alone: leave --speculate out, or take --operation-set reproducible");
  if (how == "prompt") {
    drafter = prompt_drafter();
  } else if (how == "mtp") {
    INVAR_TRY(drafter, prediction_head_drafter(*model, positions, execution, observer));
  } else {
    INVAR_TRY(drafter, model_drafter(*model, how, execution, observer));
  }
  return {};
}

Result<Engine> Engine::open(std::shared_ptr<Model> model, ExecutionOptions execution,
                            const EngineOptions& options, std::span<Request> first, Observer& observer) {
  const num::ArithmeticEnv env;
  INVAR_TRY(model, model_for(std::move(model), first));
  if (!model->is_compiled()) {
    INVAR_CHECK_OK(model->compile(observer));
  }
  int64_t longest = 0, answered = 0;
  for (const Request& r : first) longest = std::max(longest, r.positions()), answered += !r.skipped();
  const int64_t most = first.empty() ? options.batch_size : std::max<int64_t>(answered, 1);
  const int64_t sequences = std::clamp<int64_t>(options.batch_size, 1, std::max<int64_t>(most, 1));
  // A verifier repeats the steps of one sequence alone (receipt.18).
  if (sequences > 1 && model->compiled.plan.operation_set == OperationSet::deterministic)
    return not_covered(
        "--batch-size: what a deterministic program computes of a prompt may depend on the prompts beside "
        "it: leave --batch-size out");
  INVAR_CHECK_OK(reserve_receipts(*model, first));
  const int64_t context = model->folder.context;
  const int64_t positions = std::clamp(options.positions, longest, std::max(longest, context));
  auto impl = std::make_unique<Impl>(Impl{std::move(model), std::move(execution)});
  INVAR_CHECK_OK(impl->open_drafter(options, positions, observer));
  INVAR_CHECK_OK(impl->load(options, sequences, positions, observer));
  return Engine(std::move(impl));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

const Model& Engine::model() const {
  return *impl_->model;
}

const run::Session& Engine::session() const {
  return *impl_->session;
}

int64_t Engine::positions() const {
  return impl_->session ? impl_->session->capacity() : 0;
}

Status Engine::admit(Request& request, Observer& observer) {
  INVAR_CHECK_OK(impl_->take_program_of(request, observer));
  if (const int64_t needed = request.positions(); needed > positions()) {
    const num::ArithmeticEnv env;
    impl_->forget_all();
    const int64_t more = std::clamp(2 * positions(), needed, std::max(needed, model().folder.context));
    if (!impl_->session->resize(more)) {
      INVAR_CHECK_OK(impl_->session->resize(needed));
    }
    impl_->open_pool();
  }
  return reserve_receipts(model(), {&request, 1});
}

Status Engine::fit(Request& request, Observer& observer) {
  const auto n = static_cast<int64_t>(request.continued().size());
  if (n >= positions())
    return bad_input("the conversation has " + std::to_string(n) + " tokens, and the memory holds " +
                     std::to_string(positions()) +
                     " positions with the answer: begin anew, or take a larger --context");
  INVAR_CHECK_OK(impl_->take_program_of(request, observer));
  request.max_new_tokens = std::min(request.max_new_tokens, positions() - n);
  return reserve_receipts(model(), {&request, 1});
}

Status Engine::hear_languages(std::span<Request> requests) {
  const num::ArithmeticEnv env;
  std::map<const audio::Recording*, int32_t> heard;
  for (Request& r : requests) {
    if (r.skipped() || !std::exchange(r.lacks_language, false)) continue;
    const auto [at, is_new] = heard.try_emplace(r.prompt.recording.get());
    if (is_new) {
      impl_->forget_all();
      run::Session& session = *impl_->session;
      INVAR_CHECK_OK(session.encode(r.source()));
      INVAR_TRY(const std::span<const float> logits, session.step({&r.decoder_tokens[0], 1}));
      at->second = model().folder.speech->loudest(logits);
      session.reset();
    }
    r.decoder_tokens[1] = at->second;
  }
  return {};
}

GenerationTask Engine::Impl::task(const Request& request) const {
  const ModelFolder& folder = model->folder;
  return {request.continued(),
          request.max_new_tokens,
          request.params,
          request.settings->decoding.stop_tokens,
          StopStrings(folder.tokenizer, request.settings->decoding.stop_strings, request.continued(),
                      request.settings->decoding.stop_in_answer),
          drafter.get(),
          request.source(),
          request.settings->options.sampling.logprobs,
          request.settings->options.prompt_logprobs};
}

// The limit that a receipt binds. That of a salted one says nothing of the prompt's length where
// the answer has ended before it (receipt.20).
static int64_t bound_limit(const ModelFolder& model, const Request& request, const Generation& made,
                           Observer& observer) {
  const DecodingParams& decoding = request.settings->decoding;
  const int64_t given = new_tokens_as_given(model, decoding, static_cast<int64_t>(request.tokens.size()));
  const bool counts = request.params.processors.min_new_tokens > 0 && !decoding.requested_least &&
                      !decoding.config.min_new_tokens;  // it follows from min_length
  if (!request.settings->options.salt_prompt || (given <= request.max_new_tokens && !counts))
    return request.max_new_tokens;
  // The token that a setting forces at the end depends on the limit.
  const bool at_limit =
      static_cast<int64_t>(made.tokens.size()) == request.max_new_tokens &&
      (made.finish_reason != "stop" || !request.params.processors.forced_eos_token_id.empty());
  if (at_limit || counts)
    observer.note("salt", std::string("a redacted receipt will tell how many tokens this prompt has: ") +
                              (counts ? "min_length of the model's settings counts them; --min-new-tokens"
                                      : "the answer fills what they leave; --max-new-tokens") +
                              " avoids that");
  return at_limit ? request.max_new_tokens : std::max(given, request.max_new_tokens);
}

Result<Answer> Engine::Impl::seal(Request& request, const Generation& made, Observer& observer) {
  const auto sealing = observer.phase("seal");
  INVAR_CHECK_OK(session->weights_unchanged());
  const RequestSettings& settings = *request.settings;
  const ModelFolder& folder = model->folder;
  const Prompt& prompt = request.prompt;
  const std::string model_path = settings.options.record_model_path ? model->options.model_name : "";
  Answer answer;
  answer.receipt =
      receipt::seal(model->described, bound_input(request, bound_limit(folder, request, made, observer)),
                    {made.tokens, folder.tokenizer.decode(made.tokens), made.finish_reason, made.logits},
                    describe_execution(*session, model_path, model->compiled.plan, plan_digest, execution));
  answer.receipt.previous = settings.options.previous;
  if (settings.options.salt_prompt) {
    INVAR_TRY(answer.receipt.salt, random_bytes());
  }
  for (const signature::PrivateKey& key : settings.keys) INVAR_CHECK_OK(receipt::sign(answer.receipt, key));
  answer.receipt_hash = to_hex(receipt::receipt_hash(answer.receipt));
  answer.logprobs = made.logprobs, answer.prompt_logprobs = made.prompt_logprobs;
  answer.prefill_seconds = made.prefill_seconds;
  answer.decode_tokens_per_second = made.decode_tokens_per_second;
  answer.drafted = made.drafted, answer.accepted = made.accepted;
  if (prompt.receipt_path) {
    if (ReceiptSpace* const kept = request.space.get())  // for this one
      kept->space.shrink(kept->bytes -= std::exchange(request.receipt_bytes, 0));
    INVAR_CHECK_OK(save_receipt(*prompt.receipt_path, receipt::print(answer.receipt), observer));
  }
  sealing->done(answer.receipt_hash);
  return answer;
}

std::string describe_drafts(int64_t drafted, int64_t accepted) {
  return std::to_string(accepted) + " of " + std::to_string(drafted) + " drafted tokens accepted";
}

}  // namespace invar::generate
