#include "generation.h"

#include <cstdio>
#include <mutex>

#include "arrays.h"
#include "base/text/decimal.h"
#include "base/text/display.h"
#include "generate/generate.h"
#include "generate/task_cache.h"
#include "generate/verify.h"

namespace invar::python {
namespace {

using generate::ExecutionOptions;
using generate::ModelOptions;
using generate::SamplingOptions;

// Notes are kept, to be warnings of Python; phases are not shown.
class NoteCollector : public generate::Observer {
 public:
  void note(std::string_view topic, std::string_view text) override {
    notes.push_back(printable(topic) + ": " + printable(text));
  }
  void artifacts(const std::string& folder) override {
    std::fprintf(stderr, "artifacts in %s\n", printable(folder).c_str());
  }
  std::vector<std::string> notes;
};

// As text, so that a number is rounded once, to binary32, as the command line rounds it.
std::optional<float> number(const std::string& name, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  float value;
  if (const std::string wrong = parse_decimal(*text, value); !wrong.empty())
    throw Raised{bad_input(name + ": " + wrong)};
  return value;
}

// One answer. One call at a time; the lock of Python is free while it computes.
class Generation {
 public:
  Generation(ModelOptions model, ExecutionOptions execution, SamplingOptions sampling,
             generate::Prompt prompt, bool record_model_path) {
    const nb::gil_scoped_release free;
    generator_.emplace(or_raise(generate::Generator::open(
        {std::move(model), std::move(execution), sampling, {std::move(prompt)}, record_model_path},
        listener_)));
    stream_.emplace(generator_->stream(0));
  }
  // The next piece that is not empty; none behind the last, and then the answer is sealed.
  std::optional<std::string> next() {
    const nb::gil_scoped_release free;
    const std::lock_guard one(mutex_);
    while (!answer_) {
      const auto piece = or_raise(stream_->next());
      if (!piece)
        answer_.emplace(or_raise(stream_->finish(listener_)));
      else if (!piece->empty())
        return piece;
    }
    return std::nullopt;
  }
  const generate::Answer& answer() const {
    if (!answer_) throw Raised{bad_input("the answer is not finished")};
    return *answer_;
  }
  std::vector<std::string> notes() const { return listener_.notes; }

 private:
  std::mutex mutex_;
  NoteCollector listener_;
  std::optional<generate::Generator> generator_;
  std::optional<generate::AnswerStream> stream_;
  std::optional<generate::Answer> answer_;
};

// A verdict as a dictionary. `text`: the receipt's JSON; none: it is read from the file `name`.
nb::dict verdict(const std::optional<std::string>& text, const std::string& name,
                 const std::optional<std::pair<ModelOptions, ExecutionOptions>>& how) {
  NoteCollector listener;
  const generate::Verdict v = [&] {
    const nb::gil_scoped_release free;
    const std::string content = text ? *text : or_raise(generate::read_receipt(name));
    return or_raise(how ? generate::verify(content, name, how->first, how->second, listener)
                        : generate::validate(content, name));
  }();
  nb::list findings;
  for (const receipt::Finding& f : v.findings) findings.append(nb::make_tuple(f.field, f.expected, f.found));
  nb::dict compared, d;
  for (const auto& [what, with] : v.compared) compared[what.c_str()] = printable(with);
  d["ok"] = v.ok(), d["verdict"] = v.verdict, d["findings"] = findings, d["compared"] = compared;
  d["receipt_hash"] = v.receipt_hash, d["report"] = generate::report(v), d["notes"] = listener.notes;
  return d;
}

}  // namespace

// Long because it is a list of what Python sees.
void add_generation(nb::module_& m) {
  nb::class_<ModelOptions>(m, "ModelOptions")
      .def(
          "__init__",
          [](ModelOptions* self, const std::string& model_name, const std::string& plan,
             const std::string& task_dir, const std::string& tasks_root, bool colocate_tensors,
             const std::string& operation_set) {
            new (self) ModelOptions{model_name,       plan,
                                    task_dir,         tasks_root,
                                    colocate_tensors, or_raise(generate::operation_set(operation_set))};
          },
          nb::kw_only(), nb::arg("model_name"), nb::arg("plan") = "", nb::arg("task_dir") = "",
          nb::arg("tasks_root") = "", nb::arg("colocate_tensors") = false, nb::arg("operation_set") = "");
  nb::class_<ExecutionOptions>(m, "ExecutionOptions")
      .def(
          "__init__",
          [](ExecutionOptions* self, const std::string& device, const std::string& isa, int threads,
             int64_t prefill_chunk, bool kv_cache) {
            new (self) ExecutionOptions{device, false, isa, threads, prefill_chunk, !kv_cache};
          },
          nb::kw_only(), nb::arg("device"), nb::arg("isa"), nb::arg("threads"), nb::arg("prefill_chunk"),
          nb::arg("kv_cache") = true);
  nb::class_<SamplingOptions>(m, "SamplingOptions")
      .def(
          "__init__",
          [](SamplingOptions* self, std::optional<int64_t> max_new_tokens,
             const std::optional<std::string>& temperature, std::optional<int32_t> top_k,
             const std::optional<std::string>& top_p, uint64_t seed, std::optional<bool> do_sample,
             bool generation_config) {
            new (self) SamplingOptions{max_new_tokens,
                                       number("temperature", temperature),
                                       number("top_p", top_p),
                                       top_k,
                                       seed,
                                       do_sample,
                                       !generation_config};
          },
          nb::kw_only(), nb::arg("max_new_tokens").none(), nb::arg("temperature").none(),
          nb::arg("top_k").none(), nb::arg("top_p").none(), nb::arg("seed"), nb::arg("do_sample").none(),
          nb::arg("generation_config"));
  nb::class_<Generation>(m, "Generation")
      .def(
          "__init__",
          [](Generation* self, const ModelOptions& model, const ExecutionOptions& execution,
             const SamplingOptions& sampling, const std::string& prompt,
             const std::optional<std::string>& receipt_path, bool record_model_path,
             const std::string& chat) {
            const char* name = chat.empty() ? "" : "messages";
            new (self)
                Generation(model, execution, sampling, {prompt, receipt_path, chat, name}, record_model_path);
          },
          nb::arg("model"), nb::arg("execution"), nb::arg("sampling"), nb::arg("prompt"), nb::kw_only(),
          nb::arg("receipt_path").none(), nb::arg("record_model_path"), nb::arg("chat"))
      .def("next", &Generation::next)
      .def_prop_ro("notes", &Generation::notes)
      .def_prop_ro("text",
                   [](const Generation& g) {  // any bytes of the answer that are no UTF-8 became U+FFFD
                     return g.answer().receipt.text;
                   })
      .def_prop_ro("tokens", [](const Generation& g) { return g.answer().receipt.tokens; })
      .def_prop_ro("receipt", [](const Generation& g) { return receipt::print(g.answer().receipt); });
  m.def(
      "validate",
      [](const std::optional<std::string>& text, const std::string& name) {
        return verdict(text, name, std::nullopt);
      },
      nb::arg("text").none(), nb::arg("name"));
  m.def(
      "verify",
      [](const std::optional<std::string>& text, const std::string& name, const ModelOptions& model,
         const ExecutionOptions& execution) { return verdict(text, name, std::pair(model, execution)); },
      nb::arg("text").none(), nb::arg("name"), nb::arg("model"), nb::arg("execution"));
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
