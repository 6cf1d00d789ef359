// Generators: everything about a request that is found, checked and loaded before an answer, and
// the receipt behind it.
#include "generate/generate.h"

#include <algorithm>
#include <utility>

#include "base/hash/random.h"
#include "device/find_device.h"
#include "generate/answer/generator.h"
#include "generate/execution.h"
#include "generate/model/find_model.h"
#include "num/env.h"
#include "receipt/seal.h"
#include "signature/key_file.h"

namespace invar::generate {

Status Generator::Impl::read_keys() {
  for (const std::string& path : request.sign) {
    INVAR_TRY(keys.emplace_back(), signature::read_private_key(path));
  }
  return {};
}

Status Generator::Impl::encode_prompt(Job& job, const std::string& which) {
  Prompt& prompt = job.prompt;
  const bool chat = !prompt.chat.empty();
  if (chat) {
    INVAR_TRY(prompt::RenderedChat rendered, prompt::render_chat(model.chat_templates, prompt.chat, which));
    prompt.text = std::move(rendered.text);
    prompt.chat = std::move(rendered.input);
  }
  // A template writes the special tokens itself (receipt.35).
  auto tokens = model.tokenizer.encode(prompt.text, /*add_special_tokens=*/!chat);
  if (!tokens) return Error{tokens.error().code, which + ": " + tokens.error().message};
  job.tokens = std::move(*tokens);
  const int64_t n = static_cast<int64_t>(job.tokens.size());
  if (n == 0) return bad_input(which + ": no tokens in it: give some text");
  const auto most = new_tokens(model, decoding, n);
  if (!most) return Error{most.error().code, which + ": " + most.error().message};
  job.max_new_tokens = *most;
  INVAR_TRY(job.params, params_for(model, decoding, n, *most));
  longest = std::max(longest, n + *most);
  if (prompt.receipt_path) {
    INVAR_TRY(const DiskReservation possible, reserve_receipt(*prompt.receipt_path, 1));
  }
  return {};
}

// Everything that may be wrong with a prompt is found before anything is computed. One of several
// that is wrong does not stop the others.
Status Generator::Impl::encode_prompts() {
  bool any = false;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Prompt& prompt = jobs[i].prompt;
    const std::string number = jobs.size() > 1 ? "prompt " + std::to_string(i + 1) : "prompt";
    if (!prompt.problem) {
      if (Status good = encode_prompt(jobs[i], prompt.name.empty() ? number : prompt.name); !good)
        prompt.problem = good.error();
    }
    any |= !prompt.problem;
  }
  if (any || jobs.empty()) return {};
  Error all = *jobs[0].prompt.problem;
  const size_t shown = std::min<size_t>(jobs.size(), 3);
  for (size_t i = 1; i < shown; ++i) all.message += "; " + jobs[i].prompt.problem->message;
  if (const size_t rest = jobs.size() - shown; rest > 0)
    all.message += "; and " + std::to_string(rest) + " more prompts, all of them wrong";
  return all;
}

// The model never sees what the chat template leaves out. One line, whatever the number of prompts.
void Generator::Impl::remark_on_prompts(Observer& observer) const {
  std::string first;
  size_t others = 0;
  for (const Job& job : jobs) {
    const Prompt& p = job.prompt;
    if (p.chat.empty() || job.skipped()) continue;
    const std::string out = prompt::texts_left_out(model.chat_templates, {p.text, p.chat});
    if (!out.empty() && !first.empty()) ++others;
    if (!out.empty() && first.empty()) first = (p.name.empty() ? "prompt" : p.name) + ": " + out;
  }
  if (others > 0) first += "; the same of " + std::to_string(others) + " more prompts";
  if (!first.empty()) observer.note("template", first);
}

Status Generator::Impl::reserve_receipts() {
  receipt::Receipt stated = described;
  stated.sampling = decoding.params, stated.stop_strings = decoding.stop_strings;
  const std::string* path = nullptr;  // the first that there is: all lie in one folder
  for (Job& job : jobs) {
    if (!job.prompt.receipt_path || job.skipped()) continue;
    if (!path) path = &*job.prompt.receipt_path;
    job.receipt_bytes = receipt_size(stated, job.prompt.text.size() + job.prompt.chat.size(),
                                     job.tokens.size(), job.max_new_tokens) +
                        256 * keys.size();
    reserved += job.receipt_bytes;
  }
  if (!path) return {};
  INVAR_TRY(space, reserve_receipt(*path, reserved));
  return {};
}

Status Generator::Impl::size_batch() {
  const auto answered = std::count_if(jobs.begin(), jobs.end(), [](const Job& j) { return !j.skipped(); });
  sequences = std::clamp<int64_t>(request.batch_size, 1, std::max<int64_t>(answered, 1));
  // A verifier repeats the steps of one sequence alone (receipt.18).
  if (sequences > 1 && compiled.plan.operation_set == OperationSet::deterministic)
    return not_covered(
        "--batch-size: what a deterministic program computes of a prompt may depend on the prompts beside "
        "it: leave --batch-size out");
  return {};
}

Status Generator::Impl::load(Observer& observer) {
  const auto loading = observer.phase("load");
  const auto open = [&]() -> Result<run::Session> {
    run::Options options = session_options(request.execution, longest, sequences);
    options.hashed = compiled.hashed.get();
    options.load_progress = bytes_of(*loading);
    options.progress = [this](int64_t done, int64_t total) {
      if (prefilling) prefilling->progress(done, total, "tokens");
    };
    return run::Session::open(compiled.plan, compiled.folder, options);
  };
  auto opened = open();
  if (!opened && opened.error().code == Code::failed && compiled.cached && compiled.has_copies) {
    // The copies in the task folder are damaged, which says nothing about the checkpoint.
    observer.note("damaged", opened.error().message + "; made anew");
    INVAR_TRY(compiled, prepare(location, request.model, observer, CachePolicy::replace));
    INVAR_TRY(described, receipt::describe(model.identity, compiled.plan));
    opened = open();
  }
  if (!opened && opened.error().code == Code::not_covered && sequences > 1)
    return not_covered("--batch-size " + std::to_string(request.batch_size) + ": " + opened.error().message +
                       ": leave --batch-size out");
  INVAR_TRY(session, std::move(opened));
  loading->done(location.name + ", weights " + to_hex(described.weights).substr(0, 16));
  report_threads(session->threads(), request.execution, observer);
  const ExecutionOptions& e = request.execution;
  if (e.device == "cpu" && !e.cpu_only && e.workers.empty())
    if (const std::string idle = idle_gpu(); !idle.empty()) observer.note("device", "cpu; " + idle);
  remember_checkpoint(described.weights, location.folder);
  return {};
}

Result<Generator> Generator::open(Request request, Observer& observer) {
  const num::ArithmeticEnv env;
  INVAR_TRY(ModelLocation location,
            obtain({request.model.model_name, request.model.revision, request.model.offline}, observer));
  const ExecutionOptions& execution = request.execution;
  const std::future<void> starting =
      execution.cpu_only ? std::future<void>() : start_device(execution.device);
  INVAR_TRY(ModelFolder model, open_model(location));
  if (!request.model.name.empty()) model.identity.name = request.model.name;
  auto impl = std::make_unique<Impl>(std::move(request), std::move(location), std::move(model));
  INVAR_CHECK_OK(impl->read_keys());
  INVAR_TRY(impl->decoding, decoding_params(impl->model, impl->request.sampling));
  if (impl->request.conversation > 0) impl->decoding.standard = impl->model.context;  // what is left
  for (const Prompt& prompt : impl->request.prompts) impl->jobs.push_back({prompt, {}});
  INVAR_CHECK_OK(impl->encode_prompts());
  if (const int64_t positions = impl->request.conversation; positions > 0)
    impl->longest = std::clamp(positions, impl->longest, std::max(impl->longest, impl->model.context));
  const auto raw = [](const Job& job) { return job.prompt.chat.empty(); };
  if (!impl->model.chat_templates.texts.empty() && std::any_of(impl->jobs.begin(), impl->jobs.end(), raw))
    observer.note("template", "the model has a chat template, which --prompt-text skips; use --messages");
  impl->remark_on_prompts(observer);
  INVAR_TRY(impl->compiled, prepare(impl->location, impl->request.model, observer));
  INVAR_CHECK_OK(impl->size_batch());
  INVAR_TRY(impl->described, receipt::describe(impl->model.identity, impl->compiled.plan));
  INVAR_CHECK_OK(impl->reserve_receipts());
  INVAR_CHECK_OK(impl->load(observer));
  return Generator(std::move(impl));
}

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator::~Generator() = default;

Status Generator::add(Prompt prompt) {
  Impl& g = *impl_;
  Job job{std::move(prompt), {}};
  const int64_t capacity = g.longest;
  const Status good = g.encode_prompt(job, job.prompt.name.empty() ? "prompt" : job.prompt.name);
  g.longest = capacity;
  INVAR_CHECK_OK(good);
  const auto n = static_cast<int64_t>(job.tokens.size());
  if (n >= capacity)
    return bad_input("the conversation has " + std::to_string(n) + " tokens, and the memory holds " +
                     std::to_string(capacity) +
                     " positions with the answer: begin anew, or take a larger --context");
  job.max_new_tokens = std::min(job.max_new_tokens, capacity - n);
  if (job.prompt.receipt_path) {
    const size_t text = job.prompt.text.size() + job.prompt.chat.size();
    job.receipt_bytes = receipt_size(g.described, text, job.tokens.size(), job.max_new_tokens);
    g.reserved = job.receipt_bytes;
    INVAR_TRY(g.space, reserve_receipt(*job.prompt.receipt_path, g.reserved));
  }
  g.jobs.push_back(std::move(job));
  return {};
}

const prompt::ChatTemplates& Generator::chat_templates() const {
  return impl_->model.chat_templates;
}

const Error* Generator::problem(size_t prompt) const {
  const auto& problem = impl_->jobs.at(prompt).prompt.problem;
  return problem ? &*problem : nullptr;
}

const Prompt& Generator::prompt(size_t prompt) const {
  return impl_->jobs.at(prompt).prompt;
}

int64_t Generator::positions() const {
  return impl_->longest;
}

const run::Session& Generator::session() const {
  return *impl_->session;
}

GenerationTask Generator::Impl::task(const Job& job) const {
  return {job.tokens, job.max_new_tokens, job.params, model.stop_tokens,
          StopStrings(model.tokenizer, decoding.stop_strings, job.tokens)};
}

// The limit that a receipt binds. That of a salted one says nothing of the prompt's length where
// the answer has ended before it (receipt.20).
int64_t Generator::Impl::bound_limit(const Job& job, const Generation& made, Observer& observer) const {
  const int64_t given = new_tokens_as_given(model, decoding);
  const bool counts = job.params.processors.min_new_tokens > 0 && !decoding.requested_least &&
                      !decoding.config.min_new_tokens;  // it follows from min_length
  if (!request.salt_prompt || (given <= job.max_new_tokens && !counts)) return job.max_new_tokens;
  // The token that a setting forces at the end depends on the limit.
  const bool at_limit = static_cast<int64_t>(made.tokens.size()) == job.max_new_tokens &&
                        (made.finish_reason != "stop" || !job.params.processors.forced_eos_token_id.empty());
  if (at_limit || counts)
    observer.note("salt", std::string("a redacted receipt will tell how many tokens this prompt has: ") +
                              (counts ? "min_length of the model's settings counts them; --min-new-tokens"
                                      : "the answer fills what they leave; --max-new-tokens") +
                              " avoids that");
  return at_limit ? job.max_new_tokens : std::max(given, job.max_new_tokens);
}

Result<Answer> Generator::Impl::seal(Job& job, const Generation& made, Observer& observer) {
  const auto sealing = observer.phase("seal");
  INVAR_CHECK_OK(session->weights_unchanged());
  const std::string model_path = request.record_model_path ? request.model.model_name : "";
  Answer answer;
  answer.receipt =
      receipt::seal(described,
                    {job.prompt.text, job.tokens, bound_limit(job, made, observer), model.stop_tokens,
                     job.params, decoding.stop_strings, job.prompt.chat},
                    {made.tokens, model.tokenizer.decode(made.tokens), made.finish_reason, made.logits},
                    describe_execution(*session, model_path, compiled.plan, request.execution));
  answer.receipt.previous = request.previous;
  if (request.salt_prompt) {
    INVAR_TRY(answer.receipt.salt, random_bytes());
  }
  for (const signature::PrivateKey& key : keys) INVAR_CHECK_OK(receipt::sign(answer.receipt, key));
  answer.receipt_hash = to_hex(receipt::receipt_hash(answer.receipt));
  answer.prefill_seconds = made.prefill_seconds;
  answer.decode_tokens_per_second = made.decode_tokens_per_second;
  if (!job.prompt.receipt_path) {
    sealing->done(answer.receipt_hash);
    return answer;
  }
  space.shrink(reserved -= std::exchange(job.receipt_bytes, 0));  // for this one
  INVAR_CHECK_OK(save_receipt(*job.prompt.receipt_path, receipt::print(answer.receipt), observer));
  sealing->done(answer.receipt_hash);
  return answer;
}

}  // namespace invar::generate
