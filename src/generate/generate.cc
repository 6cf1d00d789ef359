#include "generate/generate.h"

#include <algorithm>
#include <deque>

#include "base/hash/random.h"
#include "generate/execution.h"
#include "generate/generation_loop.h"
#include "generate/model/decoding_params.h"
#include "generate/model/find_model.h"
#include "generate/model_folder.h"
#include "generate/output/receipt_file.h"
#include "generate/task_cache.h"
#include "num/env.h"
#include "receipt/seal.h"
#include "signature/key_file.h"

namespace invar::generate {
namespace {

struct Job {
  Prompt prompt;
  std::vector<int32_t> tokens;
  int64_t max_new_tokens = 0;
  sample::Params params{};
  uint64_t later_receipts = 0;  // bytes that the receipts of the jobs behind this one take
  bool skipped() const { return prompt.problem.has_value(); }
};

}  // namespace

struct Generator::Impl {
  Impl(Request r, ModelLocation l, ModelFolder m)
      : request(std::move(r)), location(std::move(l)), model(std::move(m)) {}
  Status read_keys();
  Status encode_prompts();
  Status encode_prompt(Job&, const std::string& which);
  Status reserve_receipts();
  Status load(Observer&);

  Request request;
  ModelLocation location;
  ModelFolder model;
  DecodingParams decoding;
  std::vector<signature::PrivateKey> keys;
  std::deque<Job> jobs;       // a stream refers to its own
  std::vector<int32_t> held;  // tokens in the session's memory
  int64_t longest = 0;        // positions of the longest job, prompt and answer
  CompiledModel compiled;
  receipt::Receipt described;
  DiskReservation space;  // for the receipts that are not written yet
  std::optional<run::Session> session;
};

Status Generator::Impl::read_keys() {
  for (const std::string& path : request.sign) {
    INVAR_TRY(keys.emplace_back(), signature::read_private_key(path));
  }
  return {};
}

Status Generator::Impl::encode_prompt(Job& job, const std::string& which) {
  Prompt& prompt = job.prompt;
  const bool chat = !prompt.chat.empty();
  if (chat && request.salt_prompt)
    return not_covered(which + ": the messages of a chat cannot be withheld: leave --salt-prompt out");
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
  for (size_t i = 1; i < jobs.size(); ++i) all.message += "; " + jobs[i].prompt.problem->message;
  return all;
}

Status Generator::Impl::reserve_receipts() {
  uint64_t needed = 0;
  receipt::Receipt stated = described;
  stated.sampling = decoding.params, stated.stop_strings = decoding.stop_strings;
  for (size_t i = jobs.size(); i-- > 0;) {
    Job& job = jobs[i];
    job.later_receipts = needed;
    if (job.prompt.receipt_path && !job.skipped())
      needed += receipt_size(stated, job.prompt.text.size() + job.prompt.chat.size(), job.tokens.size(),
                             job.max_new_tokens) +
                256 * keys.size();
  }
  for (const Job& job : jobs) {  // the first that has a path: all lie in one folder
    if (!job.prompt.receipt_path || job.skipped()) continue;
    INVAR_TRY(space, reserve_receipt(*job.prompt.receipt_path, needed));
    return {};
  }
  return {};
}

Status Generator::Impl::load(Observer& observer) {
  const auto loading = observer.phase("load");
  const auto open = [&]() -> Result<run::Session> {
    run::Options options = session_options(request.execution, longest);
    options.hashed = compiled.hashed.get();
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
  INVAR_TRY(session, std::move(opened));
  loading->done(location.name + ", weights " + to_hex(described.weights).substr(0, 16));
  report_threads(session->threads(), request.execution, observer);
  remember_checkpoint(described.weights, location.folder);
  return {};
}

Result<Generator> Generator::open(Request request, Observer& observer) {
  const num::ArithmeticEnv env;
  INVAR_TRY(ModelLocation location,
            obtain({request.model.model_name, request.model.revision, request.model.offline}, observer));
  INVAR_TRY(ModelFolder model, open_model(location));
  auto impl = std::make_unique<Impl>(std::move(request), std::move(location), std::move(model));
  INVAR_CHECK_OK(impl->read_keys());
  INVAR_TRY(impl->decoding, decoding_params(impl->model, impl->request.sampling));
  for (const Prompt& prompt : impl->request.prompts) impl->jobs.push_back({prompt, {}});
  INVAR_CHECK_OK(impl->encode_prompts());
  if (const int64_t positions = impl->request.conversation; positions > 0)
    impl->longest = std::clamp(positions, impl->longest, std::max(impl->longest, impl->model.context));
  const auto raw = [](const Job& job) { return job.prompt.chat.empty(); };
  if (!impl->model.chat_templates.texts.empty() && std::any_of(impl->jobs.begin(), impl->jobs.end(), raw))
    observer.note("template",
                  "the model has a chat template, which a prompt of text does not pass through; "
                  "--messages and \"messages\" do");
  INVAR_TRY(impl->compiled, prepare(impl->location, impl->request.model, observer));
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
    const uint64_t bytes = receipt_size(g.described, text, job.tokens.size(), job.max_new_tokens);
    INVAR_TRY(g.space, reserve_receipt(*job.prompt.receipt_path, bytes));
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

const run::Session& Generator::session() const {
  return *impl_->session;
}

struct AnswerStream::Impl {
  Impl(Generator::Impl& g, const Job& j)
      : generator(g),
        job(j),
        text(g.model.tokenizer),
        loop(*g.session, j.tokens, j.max_new_tokens, j.params, g.model.stop_tokens,
             StopStrings(g.model.tokenizer, g.decoding.stop_strings, j.tokens), take_held(g, j)) {}
  ~Impl() {  // the last token of an answer was never fed
    const auto& made = loop.generation().tokens;
    generator.held = job.tokens;
    generator.held.insert(generator.held.end(), made.begin(), made.end());
    generator.held.resize(
        std::min(generator.held.size(), static_cast<size_t>(generator.session->position())));
  }
  // How many tokens of the prompt need no computation. A position of a reproducible program has the
  // same bits however positions are grouped into steps (receipt.16); other programs begin anew.
  static size_t take_held(Generator::Impl& g, const Job& j) {
    const std::vector<int32_t> held = std::exchange(g.held, {});
    if (g.request.conversation == 0 || g.compiled.plan.operation_set != OperationSet::reproducible) return 0;
    const size_t most = std::min(held.size(), j.tokens.size() - 1);
    return static_cast<size_t>(
        std::mismatch(held.begin(), held.begin() + static_cast<int64_t>(most), j.tokens.begin()).first -
        held.begin());
  }
  Generator::Impl& generator;
  const Job& job;
  prompt::Stream text;
  GenerationLoop loop;
  bool complete = false;
};

AnswerStream Generator::stream(size_t prompt) {
  return AnswerStream(std::make_unique<AnswerStream::Impl>(*impl_, impl_->jobs.at(prompt)));
}

AnswerStream::AnswerStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream::~AnswerStream() = default;

Result<std::optional<std::string>> AnswerStream::next() {
  const num::ArithmeticEnv env;
  if (impl_->complete) return std::optional<std::string>();
  INVAR_TRY(const std::optional<int32_t> token, impl_->loop.next());
  if (token) return std::optional(impl_->text.push(*token));
  impl_->complete = true;
  return std::optional(impl_->text.finish());
}

Result<Answer> AnswerStream::finish(Observer& observer) {
  Generator::Impl& g = impl_->generator;
  const Job& job = impl_->job;
  if (!impl_->complete) return Error{Code::internal, "an answer was sealed before its end"};
  INVAR_CHECK_OK(g.session->weights_unchanged());
  const Generation& made = impl_->loop.generation();
  const std::string model_path = g.request.record_model_path ? g.request.model.model_name : "";
  Answer answer;
  answer.receipt =
      receipt::seal(g.described,
                    {job.prompt.text, job.tokens, job.max_new_tokens, g.model.stop_tokens, job.params,
                     g.decoding.stop_strings, job.prompt.chat},
                    {made.tokens, g.model.tokenizer.decode(made.tokens), made.finish_reason, made.logits},
                    describe_execution(*g.session, model_path, g.compiled.plan, g.request.execution));
  answer.receipt.previous = g.request.previous;
  if (g.request.salt_prompt) {
    INVAR_TRY(answer.receipt.salt, random_bytes());
  }
  for (const signature::PrivateKey& key : g.keys) INVAR_CHECK_OK(receipt::sign(answer.receipt, key));
  answer.receipt_hash = to_hex(receipt::receipt_hash(answer.receipt));
  answer.prefill_seconds = made.prefill_seconds;
  answer.decode_tokens_per_second = made.decode_tokens_per_second;
  if (job.prompt.receipt_path) {
    g.space.shrink(job.later_receipts);  // for this one
    INVAR_CHECK_OK(save_receipt(*job.prompt.receipt_path, receipt::print(answer.receipt), observer));
  }
  return answer;
}

}  // namespace invar::generate
