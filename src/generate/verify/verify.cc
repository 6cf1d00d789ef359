// The policy of a verification: what is compared, in which order, and what each operation set
// promises. Finding the model, compiling it and computing again are elsewhere.
#include "generate/verify/verify.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "base/text/json.h"
#include "generate/engine/execution.h"
#include "generate/engine/stop_strings.h"
#include "generate/model/find_receipt_model.h"
#include "generate/model/model.h"
#include "generate/settings/structured.h"
#include "generate/speech/segments.h"
#include "generate/speech/windows.h"
#include "generate/verify/replay.h"
#include "num/env.h"
#include "receipt/seal.h"

namespace invar::generate {
namespace {

// The names of a verdict, where it holds and where not.
struct Words {
  const char *good, *bad;
};
constexpr Words kVerified{"VERIFIED", "NOT VERIFIED"}, kSpotChecked{"SPOT CHECKED", "NOT VERIFIED"},
    kRepeated{"REPEATED ON THIS MACHINE", "NOT REPEATED"};

Verdict named(const Words& words, Verdict v, bool by_given_plan = false) {
  v.verdict = v.ok() ? words.good : words.bad;
  if (v.ok() && by_given_plan) v.verdict += kByGivenPlan;
  return v;
}

OperationSet set_of(const receipt::Receipt& valid) {
  return operation_set_from(valid.operation_set).value();  // validate knows it
}

// A receipt whose structure and hashes hold, and what is found out about it.
struct Verification {
  const receipt::Receipt& claimed;
  OperationSet set;  // the claimed one
  Verdict verdict;

  bool by_given_plan = false;

  bool failed() const { return !verdict.ok(); }
  void compared(const char* what, std::string with, bool caveat = false) {
    verdict.compared.push_back({what, std::move(with), caveat});
  }
  void finding(std::string field, std::string expected, std::string found) {
    verdict.findings.push_back({std::move(field), std::move(expected), std::move(found), true});
  }
  Error refused(const std::string& why) const { return not_covered(verdict.receipt + ": " + why); }
  std::string execution(const std::string& key) const {
    const auto it = claimed.execution.find(key);
    return it == claimed.execution.end() ? "" : it->second;
  }
};

// receipt.18: how the run went that is to be repeated.
Result<ExecutionOptions> as_it_was(const Verification& v, ExecutionOptions o) {
  const std::string chunk = v.execution("prefill_chunk"), cache = v.execution("kv_cache");
  const auto [end, error] = std::from_chars(chunk.data(), chunk.data() + chunk.size(), o.prefill_chunk);
  if (error != std::errc() || end != chunk.data() + chunk.size() || o.prefill_chunk < 1 ||
      (cache != "yes" && cache != "no"))
    return v.refused(
        "its execution section does not say prefill_chunk and kv_cache, without which a run of "
        "the operation set deterministic cannot be repeated");
  o.no_kv_cache = cache == "no";
  return o;
}

// Whether this is the kind of machine that the receipt's promise is about.
Status check_kind(const Verification& v, const run::Session& session) {
  std::map<std::string, std::string> kind = describe_kind(session);
  kind["placement"] = std::string(session.placement());  // a cut may change what runs together
  std::string differing;
  for (const auto& [key, here] : kind)
    if (const std::string there = v.execution(key); there != here)
      differing += (differing.empty() ? "" : "; ") + key + ": the receipt has '" + there + "', here it is '" +
                   here + "'";
  if (differing.empty()) return {};
  return v.refused(
      "the operation set deterministic promises the same bits on the same hardware and software "
      "alone, and this is other: " +
      differing);
}

// receipt.46: a model that hears reads nothing, and no other one hears.
void compare_kind(Verification& v, const ModelFolder& model) {
  const receipt::Receipt& claimed = v.claimed;
  const auto absent = [&](const char* field, bool is_absent) {
    if (!is_absent) v.finding(field, "no such member, or an empty one", "another");
  };
  if (!model.speech) {
    absent("input.audio", claimed.audio == Digest{});
    absent("input.audio_start", claimed.audio_start == 0);
    return;
  }
  absent("input.prompt", claimed.prompt.empty());
  absent("input.tokens", claimed.prompt_tokens.empty());
  absent("input.chat", claimed.chat.empty());
  if (claimed.audio == Digest{}) v.finding("input.audio", "the digest of a recording", "none");
}

// receipt.15: the claimed texts must be what the claimed tokens say.
Status compare_texts(Verification& v, const ModelFolder& model) {
  const receipt::Receipt& claimed = v.claimed;
  const bool chat = !claimed.chat.empty();
  if (chat) {  // receipt.35
    const auto rendered = prompt::render_chat(model.chat_templates, claimed.chat, "input.chat");
    if (!rendered && rendered.error().code == Code::not_covered) return v.refused(rendered.error().message);
    if (!rendered)
      v.finding("input.chat", "no prompt: " + rendered.error().message, "a chat");
    else if (rendered->input != claimed.chat)
      v.finding("input.chat", rendered->input, claimed.chat);
    else if (rendered->text != claimed.prompt)
      v.finding("input.prompt", "what the chat template makes of input.chat", "another text");
  }
  compare_kind(v, model);
  if (claimed.audio == Digest{}) {
    auto prompt_tokens = model.tokenizer.encode(claimed.prompt, /*add_special_tokens=*/!chat);
    if (!prompt_tokens || *prompt_tokens != claimed.prompt_tokens)
      v.finding("input.tokens", "the tokens of input.prompt", "others");
  }
  const std::string text = model.tokenizer.decode(claimed.tokens);
  if (text != claimed.text) v.finding("output.text", json::dump(text), json::dump(claimed.text));
  // receipt.13 left open whether a stop string ends the answer.
  const size_t end = stop_string_length(model.tokenizer, claimed.stop_strings, claimed.continued(),
                                        claimed.tokens, claimed.stop_in_answer);
  const bool stop_token = std::ranges::count(claimed.stop_tokens, claimed.tokens.back()) > 0;
  if (end > 0 && end < claimed.tokens.size())
    v.finding("output.tokens",
              "an end behind the first stop string, after " + std::to_string(end) + " tokens",
              std::to_string(claimed.tokens.size()) + " tokens");
  else if (const char* reason = end > 0 || stop_token ? "stop" : "length"; reason != claimed.finish_reason)
    v.finding("output.finish_reason", json::dump(reason), json::dump(claimed.finish_reason));
  if (const auto mine = stop_tokens_for(model, claimed); ascending(claimed.stop_tokens) != mine)
    v.finding("input.stop_tokens", json::dump(mine), json::dump(claimed.stop_tokens));
  // receipt.21: what the model names is asked for by nobody.
  const auto named = [&](int32_t t) { return std::ranges::count(model.stop_tokens, t) > 0; };
  if (claimed.ignore_eos ? model.stop_tokens.empty() : std::ranges::any_of(claimed.stop_token_ids, named))
    v.finding(claimed.ignore_eos ? "input.ignore_eos" : "input.stop_token_ids", "no such member, or another",
              "one without effect");
  // speech.11
  const int32_t times = claimed.sampling.processors.timestamp_begin;
  if (const int32_t mine = model.speech ? model.speech->timestamp_begin() : -1; times >= 0 && times != mine)
    v.finding("input.timestamp_begin",
              mine < 0 ? "no such member" : "no such member, or " + std::to_string(mine),
              std::to_string(times));
  else if (model.speech && !model.speech->is_answer_start(claimed.decoder_tokens, times >= 0))
    v.finding("input.decoder_tokens", "tokens of speech.7", json::dump(claimed.decoder_tokens));
  if (!model.speech && claimed.decoder_tokens != model.decoder_tokens)
    v.finding("input.decoder_tokens", json::dump(model.decoder_tokens), json::dump(claimed.decoder_tokens));
  return {};
}

// receipt.46
Status compare_recording(Verification& v, const audio::Recording* recording) {
  if (!recording)
    return bad_input(v.verdict.receipt +
                     ": the answer is to a recording, of which the receipt has the digest alone: give the "
                     "file with --audio-path");
  if (const Digest& mine = recording->digest; mine != v.claimed.audio)
    v.finding("input.audio", to_hex(mine), to_hex(v.claimed.audio));
  else
    v.compared("audio", "the samples: equal");
  return {};
}

}  // namespace

// Says what a check of some steps does not show.
static std::string what_may_be_missed(const receipt::StepSelection& selection, int64_t steps, size_t all) {
  if (selection.range) return "nothing is said of the other steps";
  const std::string others = std::to_string(static_cast<int64_t>(all) - steps), count = std::to_string(all);
  return "a single forged step with probability " + others + "/" + count + ", f of them with at most (" +
         others + "/" + count + ")^f; chosen by the salt " + selection.salt;
}

// A model that was found and compiled for an operation set, and its session.
struct LoadedModel {
  FoundModel found;
  std::shared_ptr<Model> model;
  bool presumed = false;  // its digests are a receipt's, which a session has yet to compare
  std::optional<run::Session> session = {};  // of reproducible programs
};

struct Verifier::Impl {
  Impl(ModelOptions m, ExecutionOptions e, Observer& o, receipt::StepSelection s)
      : model(std::move(m)), execution(std::move(e)), observer(o), selection(std::move(s)) {}
  Result<LoadedModel*> load(const Verification&, bool presume);
  Result<run::Session*> session(const Verification&, LoadedModel&, const ExecutionOptions&,
                                int64_t positions);
  Result<int64_t> recompute(Verification&, LoadedModel&, const receipt::Receipt& mine);
  bool may_presume(const Verification&) const;
  Status examine(Verification&);
  Status examine(Verification&, LoadedModel&);

  const ModelOptions model;
  const ExecutionOptions execution;
  Observer& observer;
  const receipt::StepSelection selection;
  // folder, adapter, set, profile
  using Key = std::tuple<std::string, std::string, OperationSet, std::string>;
  Result<Key> key_of(const FoundModel&, const Verification&) const;
  std::shared_ptr<const audio::Recording> recording = {};
  Result<run::Source> source_of(const Verification&, const ModelFolder&, std::vector<float>& features) const;
  std::map<Key, LoadedModel> loaded;
  std::future<void> starting;  // of the GPU, while the model is compiled
};

// Whether the session checks every weight of the plan.
bool Verifier::Impl::may_presume(const Verification& v) const {
  const ExecutionOptions& e = execution;
  const bool one_part = e.partitions <= 1 && e.weights_memory == 0 && e.tensor_parallel <= 1 &&
                        e.workers.empty() && e.device.find(',') == e.device.npos;
  return one_part && model.plan.empty() && v.set == OperationSet::reproducible;
}

Result<Verifier::Impl::Key> Verifier::Impl::key_of(const FoundModel& found, const Verification& v) const {
  INVAR_TRY(std::string adapter, find_adapter(model, v.claimed));
  return Key(found.location.path(), std::move(adapter), v.set, v.claimed.profile);
}

Result<LoadedModel*> Verifier::Impl::load(const Verification& v, bool presume) {
  if (!starting.valid()) starting = start(execution);
  INVAR_TRY(FoundModel found, find_model(model, v.claimed, observer));
  INVAR_TRY(const Key key, key_of(found, v));
  const auto prompt_tokens = static_cast<int64_t>(v.claimed.prompt_tokens.size());
  const auto has_program = [&](const Model& m) {  // decoder.29
    return !model.plan.empty() || m.folder.is_long(prompt_tokens) == m.options.long_context;
  };
  if (const auto known = loaded.find(key); known != loaded.end() && has_program(*known->second.model)) {
    known->second.found = std::move(found);  // another receipt may have found it in another way
    return &known->second;
  }
  loaded.erase(key);
  ModelOptions options = model;
  options.adapter = std::get<1>(key);
  if (options.plan.empty()) options.operation_set = v.set, options.profile = profile_from(v.claimed.profile);
  INVAR_TRY(const std::shared_ptr<Model> opened, Model::open(found.location, std::move(options)));
  if (!has_program(*opened)) opened->options.long_context = true;
  TensorDigests claimed;
  for (const receipt::TensorDigest& t : v.claimed.tensors) claimed.emplace(t.name, t.sha256);
  // A task folder may be damaged, so the plan is compiled from the checkpoint here and now.
  INVAR_CHECK_OK(opened->compile(observer, CachePolicy::none, presume ? &claimed : nullptr));
  if (const plan::Plan& p = opened->compiled.plan;
      presume && (!p.bodies.empty() || !p.bindings.empty() || p.states.empty())) {  // in several parts
    presume = false;
    INVAR_CHECK_OK(opened->compile(observer, CachePolicy::none));
  }
  return &loaded.try_emplace(key, LoadedModel{std::move(found), opened, presume}).first->second;
}

Result<run::Session*> Verifier::Impl::session(const Verification& v, LoadedModel& m,
                                              const ExecutionOptions& how, int64_t positions) {
  const bool repeats = v.set == OperationSet::deterministic;  // a session of its own, as the receipt says
  if (m.session && !repeats) {
    if (m.session->capacity() < positions) {
      INVAR_CHECK_OK(m.session->resize(positions));
    }
    return &*m.session;
  }
  const auto loading = observer.phase("load");
  m.session.reset();  // frees its memory first
  const CompiledModel& compiled = m.model->compiled;
  run::Options options = session_options(how, positions);
  options.hashed = options.computed = compiled.hashed.get();
  options.load_progress = bytes_of(*loading);
  if (!repeats && selection.all())
    options.first_rows = positions - 1, options.first_wanted = static_cast<int64_t>(v.claimed.tokens.size());
  INVAR_TRY(m.session, run::Session::open(compiled.plan, compiled.folder, options));
  m.presumed = false;
  if (repeats) {
    INVAR_CHECK_OK(check_kind(v, *m.session));
  }
  loading->done(m.found.location.name + ", weights " + to_hex(v.claimed.weights).substr(0, 16));
  report_threads(m.session->threads(), how, observer);
  return &*m.session;
}

// receipt.46: what the encoder was given.
Result<run::Source> Verifier::Impl::source_of(const Verification& v, const ModelFolder& folder,
                                              std::vector<float>& features) const {
  const receipt::Receipt& claimed = v.claimed;
  if (!folder.speech) return run::Source{.tokens = claimed.prompt_tokens};
  if (claimed.audio_start >= static_cast<int64_t>(recording->samples.size()))
    return bad_input(v.verdict.receipt + ": input.audio_start is behind the end of the recording");
  features = features_of(*folder.speech, *recording, claimed.audio_start);
  return run::Source{.features = features};
}

// receipt.16, receipt.18: the tokens and logits, computed again. Returns the steps that were
// compared.
Result<int64_t> Verifier::Impl::recompute(Verification& v, LoadedModel& m, const receipt::Receipt& mine) {
  const receipt::Receipt& claimed = v.claimed;
  const bool repeats = v.set == OperationSet::deterministic;
  const int64_t total = static_cast<int64_t>(claimed.continued().size() + claimed.tokens.size());
  ExecutionOptions how = execution;
  if (repeats) {
    INVAR_TRY(how, as_it_was(v, how));
    if (!selection.all())
      return v.refused(
          "its operation set is deterministic, so a step is repeated with all before it: "
          "leave --spot and --steps out");
  }
  INVAR_TRY(run::Session* const computing_on, session(v, m, how, total));
  run::Session& session = *computing_on;
  receipt::Receipt bound = claimed;
  INVAR_CHECK_OK(bind_constraint(m.model->folder, bound.sampling.processors));
  const auto computing = observer.phase("recompute");
  std::vector<float> features;
  if (session.has_encoder()) {
    INVAR_TRY(const run::Source source, source_of(v, m.model->folder, features));
    INVAR_CHECK_OK(session.encode(source));
  }
  INVAR_TRY(
      receipt::Verdict verdict,
      receipt::verify(bound, mine,
                      repeats ? repeat_steps(session, claimed.continued().size(), *computing)
                              : forward_pass(session, *computing),
                      session.vocab(), selection,
                      {[&](int count, const std::function<void(int)>& f) { session.parallel_for(count, f); },
                       session.threads()}));
  INVAR_CHECK_OK(session.weights_unchanged());
  v.verdict.findings = verdict.findings;
  computing->done(std::to_string(verdict.steps_compared) + " steps, " +
                  (repeats ? "as the receipt took them" : "one forward pass") + " of " +
                  std::to_string(total - 1) + " tokens");
  return verdict.steps_compared;
}

// All that needs the model. The weights are hashed once, when they are loaded, against the claimed
// digests. Where that or anything before it fails, the plan is made again with their own digests,
// which the findings name.
Status Verifier::Impl::examine(Verification& v) {
  const Verdict before = v.verdict;
  INVAR_TRY(LoadedModel * m, load(v, may_presume(v)));
  Status examined = examine(v, *m);
  if (!m->presumed) return examined;
  INVAR_TRY(const Key key, key_of(m->found, v));
  loaded.erase(key);
  v.verdict = before;
  INVAR_TRY(m, load(v, /*presume=*/false));
  return examine(v, *m);
}

// The first comparisons decide whether the rest is worth computing.
Status Verifier::Impl::examine(Verification& v, LoadedModel& m) {
  const receipt::Receipt& claimed = v.claimed;
  const ModelFolder& folder = m.model->folder;
  const bool given = m.model->compiled.given;
  INVAR_TRY(receipt::Receipt mine,
            receipt::describe(folder.identity, m.model->compiled.plan, claimed.format));
  mine.model_name = claimed.model_name;  // labels: check_name() says what is known of them
  mine.revision = claimed.revision;
  mine.adapter_name = claimed.adapter_name;

  v.by_given_plan = given;
  v.compared("folder", m.found.location.path() + " (" + m.found.source + ")",
             /*caveat=*/model.model_name.empty());
  v.verdict.findings = receipt::compare_model(claimed, mine);
  if (v.failed()) return {};
  const NameCheck name = check_name(m.found.location, claimed);
  v.verdict.findings = name.findings;
  if (v.failed()) return {};
  INVAR_CHECK_OK(compare_texts(v, folder));
  if (claimed.audio != Digest{}) {
    INVAR_CHECK_OK(compare_recording(v, recording.get()));
  }
  if (v.failed()) return {};

  if (v.set == OperationSet::any)
    return v.refused(
        "nobody can verify a run of the operation set default, which promises nothing about bits: model, "
        "program, prompt and texts are those of the receipt, tokens and logits were not computed again");
  const size_t total = claimed.continued().size() + claimed.tokens.size();
  const int64_t context = folder.context_of(static_cast<int64_t>(claimed.continued().size()));
  if (static_cast<int64_t>(total) > context) {
    v.finding("output.tokens", "at most " + std::to_string(context) + " positions with the prompt",
              std::to_string(total));
    return {};
  }
  INVAR_TRY(const int64_t steps, recompute(v, m, mine));

  const bool has_template = mine.chat_template != sha256("");  // receipt.19
  v.compared("model", std::to_string(mine.tensors.size()) + " tensors, config, tokenizer" +
                          (has_template ? ", template: equal" : ": equal; neither has a chat template"));
  v.compared("weights", to_hex(mine.weights), /*caveat=*/!name.checked);  // all that says which model it is
  v.compared("named", name.text, /*caveat=*/!name.checked);
  v.compared("program",
             (mine.recipe.empty() ? "plan " : mine.recipe + ", ") + to_hex(mine.program).substr(0, 16) +
                 " (numerics " + mine.numerics +
                 (mine.profile == name_of(Profile::exact16) ? ", exact16), " : "), ") +
                 (model.plan.empty() ? "compiled from this folder: equal"
                  : given            ? "the plan " + model.plan + ", as it was given: equal"
                                     : "the plan " + model.plan + ": equal"),
             given);
  v.compared("steps",
             std::to_string(steps) + " of " + std::to_string(claimed.tokens.size()) +
                 " recomputed: logits commitments and tokens equal",
             /*caveat=*/!selection.all());
  if (folder.speech) {
    const int64_t next = next_window(folder, claimed, static_cast<int64_t>(recording->samples.size()));
    v.compared("window", "from sample " + std::to_string(claimed.audio_start) + " on; " +
                             (next < 0 ? "none comes after it"
                                       : "the next one begins with sample " + std::to_string(next)));
  }
  if (!selection.all())
    v.compared("missed", what_may_be_missed(selection, steps, claimed.tokens.size()), /*caveat=*/true);
  if (v.set == OperationSet::deterministic)
    v.compared("promise",
               "operation set deterministic: this hardware with this software (" + v.execution("processor") +
                   "; libraries: " + v.execution("libraries") +
                   ") repeats the bits; nothing is said of any other",
               /*caveat=*/true);
  return {};
}

Verifier::Verifier(ModelOptions model, ExecutionOptions execution, Observer& observer,
                   receipt::StepSelection selection, std::vector<signature::PublicKey> required)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(execution), observer, std::move(selection))),
      reader_(std::move(required)) {}
Verifier::~Verifier() = default;

void Verifier::hear(std::shared_ptr<const audio::Recording> recording) {
  impl_->recording = std::move(recording);
}

Result<Verdict> Verifier::verify(std::string_view text, const std::string& name, const InBatch* batch) {
  const num::ArithmeticEnv env;
  receipt::Receipt claimed;
  INVAR_TRY(Verdict read, reader_.read(text, name, claimed, batch));
  if (!read.ok()) return named(kVerified, std::move(read));
  if (claimed.format == receipt::kTensorFormat)
    return bad_input(name +
                     ": a receipt of tensors, which `invar verify --model FILE --input NAME=FILE` verifies");
  Verification v{claimed, set_of(claimed), std::move(read)};
  if (!claimed.withheld.empty())
    return v.refused(
        "its prompt is withheld (receipt.27), so nothing can be computed again: ask for the receipt that it "
        "was made from, which has the same hash");
  // Before a model is looked for: whether there are such steps.
  if (const auto steps = receipt::select_steps(claimed, impl_->selection); !steps)
    return Error{steps.error().code, name + ": " + steps.error().message};
  INVAR_CHECK_OK(impl_->examine(v));
  const Words& words = v.set != OperationSet::reproducible ? kRepeated
                       : impl_->selection.all()            ? kVerified
                                                           : kSpotChecked;
  return named(words, std::move(v.verdict), v.by_given_plan);
}

Result<Verdict> verify(std::string_view text, const std::string& name, const ModelOptions& model,
                       const ExecutionOptions& execution, Observer& observer,
                       const receipt::StepSelection& selection) {
  return Verifier(model, execution, observer, selection).verify(text, name);
}

}  // namespace invar::generate
