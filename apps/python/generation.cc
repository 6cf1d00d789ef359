#include "generation.h"

#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <type_traits>

#include "arrays.h"
#include "base/hash/random_bytes.h"
#include "base/text/decimal.h"
#include "base/text/display.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/engine.h"
#include "generate/engine/execution.h"
#include "generate/speech/segments.h"
#include "generate/speech/windows.h"
#include "generate/tensors/table.h"
#include "generate/tensors/tensors.h"
#include "generate/verify/verify.h"
#include "jobs/job.h"
#include "signature/key_file.h"

namespace invar::python {
namespace {

using generate::ExecutionOptions;
using generate::ModelOptions;
using generate::SamplingOptions;

// A download looks for Ctrl-C while the lock of Python is free.
class InterruptiblePhase : public generate::Phase {
 public:
  bool bytes(uint64_t, uint64_t) override {
    const nb::gil_scoped_acquire held;
    return PyErr_CheckSignals() == 0;
  }
};

// The result of `call`, computed with the lock of Python free; the exception of a signal handler
// comes before its error.
template <class Call>
auto unlocked(const Call& call) {
  auto result = [&] {
    const nb::gil_scoped_release free;
    return call();
  }();
  if (PyErr_Occurred()) throw nb::python_error();
  return or_raise(std::move(result));
}

// Notes are kept, to be warnings of Python; phases are not shown.
class NoteCollector : public generate::Observer {
 public:
  std::unique_ptr<generate::Phase> phase(std::string_view) override {
    return std::make_unique<InterruptiblePhase>();
  }
  void note(std::string_view topic, std::string_view text) override {
    notes.push_back(printable(topic) + ": " + printable(text));
  }
  void artifacts(const std::string& folder) override {
    std::fprintf(stderr, "artifacts in %s\n", printable(folder).c_str());
  }
  std::vector<std::string> notes;
};

// A member of the options, which invar/generation.py sets: numbers as text, so that each is rounded
// once, to binary32, as the command line rounds it; names, "" for the default.
template <class Options, class Base, class T>
void member(nb::class_<Options>& options, const char* name, T Base::*where) {
  const auto text = [&](auto from) {
    options.def_prop_rw(name, nullptr, [=](Options& o, const std::string& value) { o.*where = from(value); });
  };
  if constexpr (std::is_same_v<T, std::optional<Profile>>)
    text([](const std::string& value) { return or_raise(generate::profile(value)); });
  else if constexpr (std::is_same_v<T, std::optional<OperationSet>>)
    text([](const std::string& value) { return or_raise(generate::operation_set(value)); });
  else if constexpr (std::is_same_v<T, std::optional<float>>)
    text([name](const std::string& value) {
      float number;
      if (const std::string wrong = parse_decimal(value, number); !wrong.empty())
        throw Raised{bad_input(name + (": " + wrong))};
      return std::optional(number);
    });
  else if constexpr (std::is_same_v<T, std::optional<std::vector<sample::LogitBias>>>)
    options.def_prop_rw(
        name, nullptr, [=](Options& o, const std::vector<std::pair<int32_t, std::string>>& value) {
          std::vector<sample::LogitBias>& list = (o.*where).emplace();
          for (const auto& [token, bias] : value)
            if (const std::string wrong = parse_decimal(bias, list.emplace_back(token, 0.0f).bias);
                !wrong.empty())
              throw Raised{bad_input(name + (": " + wrong))};
        });
  else
    options.def_prop_rw(name, nullptr, [=](Options& o, const T& value) { o.*where = value; });
}

run::Transport* transport_of(const std::shared_ptr<Job>& job) {
  return job ? &job->transport() : nullptr;
}

// A model that is loaded at its first request and answers one after another.
class Engine {
 public:
  Engine(ModelOptions where, ExecutionOptions execution, std::shared_ptr<Job> job)
      : where_(std::move(where)), execution_(std::move(execution)), job_(std::move(job)) {}
  Result<generate::Request> prepare(generate::RequestOptions options, generate::Prompt prompt,
                                    generate::Observer& observer) {
    const run::Transport::Here here(transport_of(job_));
    const auto starting = engine_ ? std::future<void>() : generate::start(execution_);
    if (!model_) {
      INVAR_TRY(model_, generate::Model::open(where_, observer));
    }
    INVAR_TRY(const auto settings, generate::RequestSettings::make(*model_, std::move(options)));
    INVAR_TRY(std::vector<generate::Request> made,
              generate::make_requests(*model_, {std::move(prompt)}, settings, observer));
    if (engine_) {
      INVAR_CHECK_OK(engine_->admit(made[0], observer));
    } else {
      ++loads_;
      INVAR_TRY(generate::Engine opened, generate::Engine::open(model_, execution_, {}, made, observer));
      engine_.emplace(std::move(opened));
    }
    INVAR_CHECK_OK(engine_->hear_languages(made));
    return std::move(made[0]);
  }
  generate::AnswerStream stream(generate::Request& request, generate::Observer& observer) {
    return engine_->stream(request, observer);
  }
  // Of an answer with timestamps.
  generate::Segmented segments(const generate::Request& request, const generate::Answer& answer) const {
    return generate::segments_of(model_->folder, answer.receipt.tokens, answer.receipt.stop_tokens,
                                 request.prompt.first_sample,
                                 static_cast<int64_t>(request.prompt.recording->samples.size()));
  }
  int64_t loads() const { return loads_; }
  // Whether it is what these options ask for.
  bool serves(const ModelOptions& where, const ExecutionOptions& execution) const {
    return where == where_ && static_cast<const generate::ExecutionSettings&>(execution) == execution_;
  }

 private:
  const ModelOptions where_;
  const ExecutionOptions execution_;
  const std::shared_ptr<Job> job_;  // of its workers
  std::shared_ptr<generate::Model> model_;
  std::optional<generate::Engine> engine_;
  int64_t loads_ = 0;
};

// One answer, with an engine that computes no other one meanwhile. One call at a time; the lock of
// Python is free while it computes.
class Generation {
 public:
  Generation(std::shared_ptr<Engine> engine, generate::RequestOptions options, generate::Prompt prompt)
      : engine_(std::move(engine)) {
    request_.emplace(
        unlocked([&] { return engine_->prepare(std::move(options), std::move(prompt), listener_); }));
    stream_.emplace(engine_->stream(*request_, listener_));
  }
  // The next piece that is not empty; none behind the last, and then the answer is sealed.
  std::optional<std::string> next() {
    const nb::gil_scoped_release free;
    const std::lock_guard one(mutex_);
    while (!answer_) {
      const auto piece = or_raise(stream_->next());
      if (piece && !piece->empty()) return piece;
      if (piece) continue;
      answer_.emplace(or_raise(stream_->finish())), stream_.reset();
      if (request_->settings->options.timestamps) segmented_ = engine_->segments(*request_, *answer_);
      engine_.reset();
    }
    return std::nullopt;
  }
  // Without timestamps there are none.
  const generate::Segmented& segmented() const { return answer(), segmented_; }
  const generate::Answer& answer() const {
    if (!answer_) throw Raised{bad_input("the answer is not finished")};
    return *answer_;
  }
  std::vector<std::string> notes() const { return listener_.notes; }

 private:
  std::mutex mutex_;
  NoteCollector listener_;
  std::shared_ptr<Engine> engine_;  // until the answer is sealed: an answer keeps no model loaded
  std::optional<generate::Request> request_;
  std::optional<generate::AnswerStream> stream_;
  std::optional<generate::Answer> answer_;
  generate::Segmented segmented_{{}, -1};
};

// The shortest decimals, as `invar run --json` prints them.
nb::dict dictionary(const sample::TokenLogprob& t) {
  nb::dict d;
  d["token"] = t.token;
  d["logprob"] = std::isfinite(t.logprob) ? shortest_decimal(t.logprob) : double{t.logprob};
  return d;
}
nb::list list_of(const std::vector<sample::StepLogprobs>& steps) {
  nb::list all;
  for (const sample::StepLogprobs& step : steps) {
    nb::dict one = dictionary(step.chosen);
    nb::list top;
    for (const sample::TokenLogprob& t : step.top) top.append(dictionary(t));
    one["top_logprobs"] = top;
    all.append(one);
  }
  return all;
}

nb::list list_of(const std::vector<generate::Segment>& segments) {
  constexpr auto kRate = static_cast<double>(audio::kSpeechRate);
  nb::list all;
  for (const generate::Segment& s : segments) {
    nb::dict one;
    one["start"] = static_cast<double>(s.begin) / kRate, one["end"] = static_cast<double>(s.end) / kRate;
    one["text"] = s.text, one["tokens"] = s.tokens;
    all.append(one);
  }
  return all;
}

nb::dict dictionary(const generate::Verdict& v) {
  nb::list findings;
  for (const receipt::Finding& f : v.findings) findings.append(nb::make_tuple(f.field, f.expected, f.found));
  nb::dict compared, d;
  nb::list caveats;
  for (const generate::Compared& c : v.compared) {
    compared[c.what.c_str()] = printable(c.how);
    if (c.caveat) caveats.append(c.what);
  }
  d["ok"] = v.ok(), d["verdict"] = v.verdict, d["findings"] = findings, d["compared"] = compared;
  d["caveats"] = caveats;
  d["receipt_hash"] = v.receipt_hash, d["report"] = generate::report(v), d["receipt"] = v.receipt;
  return d;
}

// A receipt's JSON, or none: it is read from the file; and what messages call it.
using Claim = std::pair<std::optional<std::string>, std::string>;
struct Recomputation {
  std::string recording;  // its file, of receipts of one
  ModelOptions model;
  ExecutionOptions execution;
  std::shared_ptr<Job> job;  // of its workers
  receipt::StepSelection selection;
  generate::TensorProgram program;  // of receipts of tensors, as their inputs
  run::Function::NamedTensors inputs;
};

using NamedArrays = std::vector<std::pair<std::string, ReadOnly>>;
run::Function::NamedTensors copies_of(const NamedArrays& arrays) {
  run::Function::NamedTensors tensors;
  for (const auto& [name, array] : arrays) {
    const Given given(array, "input '" + name + "'");
    const run::TensorView view = given.view();
    if (view.device >= 0) throw Raised{bad_input("input '" + name + "': an array on the host is needed")};
    tensors.emplace_back(name, run::Tensor{view.dtype,
                                           {view.shape.begin(), view.shape.end()},
                                           {view.bytes.begin(), view.bytes.end()}});
  }
  return tensors;
}

// Verdicts as dictionaries, and notes. Where several receipts are asked for, one that is refused
// stops none of the others; a batch is several.
nb::tuple judge(const std::vector<Claim>& claims, bool several, const std::vector<std::string>& require_keys,
                std::optional<Recomputation> how) {
  NoteCollector listener;
  std::vector<std::pair<std::string, Result<generate::Verdict>>> verdicts;
  {
    const nb::gil_scoped_release free;
    std::vector<signature::PublicKey> required;
    for (const std::string& key : require_keys) required.push_back(or_raise(signature::read_public_key(key)));
    std::optional<generate::Verifier> verifier;
    generate::Reader reader(required);
    const run::Transport::Here here(how ? transport_of(how->job) : nullptr);
    if (how) {
      receipt::StepSelection& selection = how->selection;
      if (selection.spot > 0 && selection.salt.empty())
        selection.salt = to_hex(or_raise(random_bytes())).substr(0, 32);
      verifier.emplace(how->model, how->execution, listener, selection, std::move(required));
      if (!how->recording.empty()) verifier->hear(or_raise(generate::read_speech_recording(how->recording)));
    }
    const generate::Judge one = [&](std::string_view text, const std::string& name,
                                    const generate::InBatch* batch) {
      if (!verifier) return reader.validate(text, name, batch);
      return generate::verify_any(text, name, batch, *verifier, how->program, how->inputs, how->execution,
                                  how->selection, listener);
    };
    for (const auto& [text, name] : claims)
      if (text)
        verdicts.emplace_back(name, one(*text, name, nullptr));
      else
        generate::judge_file(name, reader, one,
                             [&](const auto& which, const auto& v) { verdicts.emplace_back(which, v); });
  }
  if (PyErr_Occurred()) throw nb::python_error();
  if (!several && verdicts.size() == 1 && !verdicts[0].second) throw Raised{verdicts[0].second.error()};
  nb::list all;
  for (const auto& [name, v] : verdicts) {
    generate::Verdict refused;
    refused.verdict = "REFUSED", refused.receipt = name;
    nb::dict d = dictionary(v ? *v : refused);
    if (!v) d["ok"] = false, d["report"] = printable(v.error());
    all.append(d);
  }
  return nb::make_tuple(all, listener.notes);
}

// The outputs of a plan, which was compiled from `model` into `folder`, by name, with a receipt.
nb::list record(const std::string& plan, const std::string& model, const std::string& folder,
                const NamedArrays& inputs, const std::string& receipt_path) {
  NoteCollector listener;
  const run::Function::NamedTensors tensors = copies_of(inputs);
  generate::TensorAnswer answer;
  {
    const nb::gil_scoped_release free;
    generate::CompiledModel program;
    program.plan = or_raise(plan::load(plan)), program.folder = folder;
    answer =
        or_raise(generate::infer_tensors(std::move(program), model, tensors, {}, receipt_path, listener));
  }
  nb::list all;
  for (auto& [name, tensor] : answer.outputs) all.append(nb::make_tuple(name, array_of(std::move(tensor))));
  return all;
}

// The strings of a model by number, and the names of inputs and outputs that are such numbers.
nb::tuple string_table(const std::string& model) {
  const generate::TableEdges edges = or_raise(generate::table_edges(model));
  return nb::make_tuple(edges.strings, std::vector(edges.inputs.begin(), edges.inputs.end()),
                        std::vector(edges.outputs.begin(), edges.outputs.end()));
}

void add_verdicts(nb::module_& m) {
  m.def("record", &record, nb::arg("plan"), nb::arg("model"), nb::arg("folder"), nb::arg("inputs"),
        nb::arg("receipt_path"));
  m.def("string_table", &string_table, nb::arg("model"));
  m.def(
      "validate",
      [](const std::vector<Claim>& claims, bool several, const std::vector<std::string>& require_keys) {
        return judge(claims, several, require_keys, std::nullopt);
      },
      nb::arg("claims"), nb::arg("several"), nb::arg("require_keys"));
  m.def(
      "verify",
      [](const std::vector<Claim>& claims, bool several, const std::vector<std::string>& require_keys,
         const ModelOptions& model, const ExecutionOptions& execution, std::shared_ptr<Job> job, int64_t spot,
         const std::string& salt, const std::optional<std::pair<int64_t, int64_t>>& steps,
         const NamedArrays& inputs, const NamedArrays& bound,
         const std::vector<std::pair<std::string, int64_t>>& dims, const std::string& choices,
         const std::string& audio) {
        generate::TensorProgram program{.plan = model.plan,
                                        .model = "",
                                        .encoder = {},
                                        .dims = dims,
                                        .bound = copies_of(bound),
                                        .choices = choices};
        if (model.model_name.ends_with(".onnx")) program.model = model.model_name;
        if (!program.plan.empty() && !program.model.empty())
          throw Raised{bad_input("model is compiled and plan is taken as it is: give one of them")};
        return judge(claims, several, require_keys,
                     Recomputation{audio,
                                   model,
                                   execution,
                                   std::move(job),
                                   {spot, salt, steps},
                                   std::move(program),
                                   copies_of(inputs)});
      },
      nb::arg("claims"), nb::arg("several"), nb::arg("require_keys"), nb::arg("model"), nb::arg("execution"),
      nb::arg("job").none(), nb::arg("spot"), nb::arg("salt"), nb::arg("steps").none(), nb::arg("inputs"),
      nb::arg("bind"), nb::arg("dims"), nb::arg("choices"), nb::arg("audio"));
}

void add_generations(nb::module_& m) {
  nb::class_<Job>(m, "Job");
  m.def(
      "start_job",
      [](const std::vector<std::string>& command, double patience) {
        return std::shared_ptr<Job>(unlocked([&] {
          return Job::start(command, patience, [] {
            const nb::gil_scoped_acquire held;
            return PyErr_CheckSignals() == 0;
          });
        }));
      },
      nb::arg("command"), nb::arg("patience"));
  nb::class_<Engine>(m, "Engine")
      .def(nb::init<ModelOptions, ExecutionOptions, std::shared_ptr<Job>>(), nb::arg("model"),
           nb::arg("execution"), nb::arg("job").none())
      .def("serves", &Engine::serves, nb::arg("model"), nb::arg("execution"))
      .def_prop_ro("loads", &Engine::loads);
  nb::class_<Generation>(m, "Generation")
      .def(
          "__init__",
          [](Generation* self, std::shared_ptr<Engine> engine, const SamplingOptions& sampling,
             const std::string& prompt, const std::optional<std::string>& receipt_path,
             bool record_model_path, const std::vector<std::string>& sign, bool salt_prompt,
             const std::string& previous, const std::string& chat, const std::string& audio,
             int64_t audio_start, const std::string& language, const std::string& task, bool timestamps) {
            generate::RequestOptions options{sampling, record_model_path, sign, salt_prompt,
                                             digest_from_hex(previous).value_or(Digest{})};
            options.language = language, options.task = task, options.timestamps = timestamps;
            generate::Prompt asked{prompt, receipt_path, chat, chat.empty() ? "" : "messages"};
            if (!audio.empty()) asked.recording = or_raise(generate::read_speech_recording(audio));
            asked.first_sample = audio_start;
            new (self) Generation(std::move(engine), std::move(options), std::move(asked));
          },
          nb::arg("engine"), nb::arg("sampling"), nb::arg("prompt"), nb::kw_only(),
          nb::arg("receipt_path").none(), nb::arg("record_model_path"), nb::arg("sign"),
          nb::arg("salt_prompt"), nb::arg("previous"), nb::arg("chat"), nb::arg("audio"),
          nb::arg("audio_start"), nb::arg("language"), nb::arg("task"), nb::arg("timestamps"))
      .def("next", &Generation::next)
      .def_prop_ro("notes", &Generation::notes)
      .def_prop_ro("text",
                   [](const Generation& g) {  // any bytes of the answer that are no UTF-8 became U+FFFD
                     return g.answer().receipt.text;
                   })
      .def_prop_ro("tokens", [](const Generation& g) { return g.answer().receipt.tokens; })
      .def_prop_ro("logprobs", [](const Generation& g) { return list_of(g.answer().logprobs); })
      .def_prop_ro("segments", [](const Generation& g) { return list_of(g.segmented().segments); })
      .def_prop_ro("next_audio_start", [](const Generation& g) { return g.segmented().next; })
      .def_prop_ro("receipt", [](const Generation& g) { return receipt::print(g.answer().receipt); });
}

}  // namespace

void add_generation(nb::module_& m) {
  nb::class_<ModelOptions> model(m, "ModelOptions");
  nb::class_<ExecutionOptions> execution(m, "ExecutionOptions");
  nb::class_<SamplingOptions> sampling(m, "SamplingOptions");
  model.def(nb::init<>()), execution.def(nb::init<>()), sampling.def(nb::init<>());
#include "options/python_members.inc"
  add_generations(m);
  add_verdicts(m);
  m.def(
      "chat_input",
      [](const std::string& messages, const std::optional<std::string>& tools,
         std::optional<bool> enable_thinking) {
        generate::ChatOptions options;
        options.tools = tools.value_or(""), options.tools_file = "tools",
        options.enable_thinking = enable_thinking;
        return or_raise(generate::chat_input(messages, "messages", options));
      },
      nb::arg("messages"), nb::arg("tools").none(), nb::arg("enable_thinking").none());
}

}  // namespace invar::python
