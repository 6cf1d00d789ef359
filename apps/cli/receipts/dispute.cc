// invar trace, diff, answer, dispute: why two results differ, and which of them is right.
#include <sys/stat.h>

#include <cerrno>

#include "artifacts.h"
#include "base/file/file.h"
#include "base/text/decimal.h"
#include "commands.h"
#include "console.h"
#include "dispute/compare.h"
#include "dispute/judge.h"
#include "generate/model/model_folder.h"
#include "generate/tensors/tensors.h"
#include "generate/verify/verify.h"
#include "outputs/folders.h"
#include "receipts/sandbox.h"

namespace invar::cli {
namespace {

using json::Value;

Result<generate::DisputedRun> open(const DisputeCommand& c, const std::string& receipt, Console& console) {
  INVAR_TRY(const std::string text, generate::read_receipt(receipt));
  return generate::open_disputed(text, receipt, c.model, c.execution, console);
}

// The same, where the receipt must be of this model.
Result<generate::DisputedRun> open_same_model(const DisputeCommand& c, Console& console) {
  INVAR_TRY(generate::DisputedRun run, open(c, c.receipt, console));
  if (run.other_model.empty()) return run;
  return Error{Code::failed,
               c.receipt + ": this is not the receipt's model: " + receipt::text_of(run.other_model.front())};
}

// The forward passes over a subject as phases: loading, and tokens.
class Passes {
 public:
  Passes(dispute::Subject& subject, Console& console) : console_(console) {
    subject.options.load_progress = [this](uint64_t done, uint64_t total) {
      if (!loading_) loading_ = console_.phase("load");
      loading_->bytes(done, total);
    };
    subject.options.progress = [this](int64_t done, int64_t total) {
      if (loading_) std::exchange(loading_, nullptr)->done("");
      if (!recomputing_) recomputing_ = console_.phase("recompute");
      recomputing_->progress(done, total, "tokens");
      if (done == total)
        std::exchange(recomputing_, nullptr)->done("a forward pass of " + std::to_string(total) + " tokens");
    };
  }

 private:
  Console& console_;
  std::unique_ptr<generate::Phase> loading_, recomputing_;
};

// "V:ROW"
Result<std::pair<int64_t, int64_t>> place_of(const std::string& text) {
  const size_t colon = text.find(':');
  const auto value = parse_whole(text.substr(0, colon), 0, INT32_MAX);
  const auto row = colon == text.npos ? std::nullopt : parse_whole(text.substr(colon + 1), 0, INT32_MAX);
  if (!value || !row) return bad_input("--values " + text + ": a value and a row such as 9:66 are needed");
  return std::pair(static_cast<int64_t>(*value), static_cast<int64_t>(*row));
}

Result<std::string> traced(const DisputeCommand& c, Console& console) {
  INVAR_TRY(generate::DisputedRun run, open(c, c.receipt, console));
  Passes passes(run.subject, console);
  if (c.rows >= 0) {
    INVAR_TRY(const dispute::Rows rows, dispute::rows(run.subject, c.rows));
    return print(rows);
  }
  if (!c.values.empty()) {
    INVAR_TRY(const auto place, place_of(c.values));
    INVAR_TRY(const dispute::Values values, dispute::values(run.subject, place.first, place.second));
    return print(values);
  }
  INVAR_TRY(const dispute::Trace trace, dispute::trace(run.subject));
  return print(trace);
}

Result<std::string> answered(const DisputeCommand& c, Console& console) {
  INVAR_TRY(const std::string text, read_file(c.file, dispute::kExchangeFile));
  INVAR_TRY(const dispute::Question question, dispute::parse_as<dispute::Question>(text, c.file));
  INVAR_TRY(generate::DisputedRun run, open_same_model(c, console));
  Passes passes(run.subject, console);
  return dispute::answer(run.subject, question);
}

bool exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

// The files of a party in the folder of the case. What it hands in that cannot be read is its
// fault, and nothing of it makes the judge wait: a folder, a pipe, a device, a file without end.
dispute::Party party_of(const std::string& folder, char party, int& answers) {
  return [=, &answers](const dispute::Question& q, uint64_t most) -> std::optional<dispute::Answer> {
    dispute::Answer answer{folder + "/" + q.answer_file(party), {}, {}};
    struct stat status;
    if (::stat(answer.name.c_str(), &status) != 0 && errno == ENOENT) return std::nullopt;
    ++answers;
    auto text = read_file(answer.name, {"an answer to this question", most});
    text ? answer.text = *std::move(text) : answer.fault = text.error().message;
    return answer;
  };
}

Result<dispute::Ruling> ruling(const DisputeCommand& c, Console& console) {
  const std::string path = c.file + "/question.json";
  std::optional<dispute::Question> asked;
  if (exists(path)) {
    INVAR_TRY(const std::string text, read_file(path, {"the question of a case", 1 << 20}));
    INVAR_TRY(asked, dispute::parse_as<dispute::Question>(text, path));
  }
  INVAR_TRY(const generate::DisputedRun run, open_same_model(c, console));
  if (asked) {
    if (const auto other = dispute::compare(asked->of, run.subject.of); !other.member.empty())
      return bad_input(path + ": computation." + other.member + ": " + other.a + ", and here it is " +
                       other.b + "; a case is about one receipt");
  }
  const auto judging = console.phase("judge");
  int a = 0, b = 0;
  INVAR_TRY(dispute::Ruling r, dispute::judge(run.subject, party_of(c.file, 'a', a), party_of(c.file, 'b', b),
                                              asked ? &*asked : nullptr, c.close));
  judging->done(std::to_string(a) + " answers of a, " + std::to_string(b) + " of b");
  if (const auto* question = std::get_if<dispute::Question>(&r)) {
    INVAR_CHECK_OK(write_file(path, print(*question)));
  }
  return r;
}

std::string text_of(const DisputeCommand& c, const dispute::Question& q) {
  const std::string path = c.file + "/question.json";
  std::string what = q.asks;
  if (q.value >= 0) what += " of value " + std::to_string(q.value);
  if (q.row >= 0) what += " at position " + std::to_string(q.row);
  std::string text = "QUESTION  " + what + " (round " + std::to_string(q.round) + ")\n";
  for (const char party : {'a', 'b'}) {
    if (party == 'a' && q.asks == "objection") continue;  // only b says what is wrong
    const std::string answer = c.file + "/" + q.answer_file(party);
    text += std::string("  ") + party +
            (exists(answer)
                 ? " has answered: " + answer
                 : " answers with: invar answer " + path + " --receipt " + c.receipt + " -o " + answer) +
            "\n";
  }
  return text;
}

std::string json_of(const dispute::Ruling& r) {
  if (const auto* q = std::get_if<dispute::Question>(&r)) {
    return line_of({{"question", q->asks}, {"round_number", q->round}, {"value", q->value}, {"row", q->row}});
  }
  const auto& v = std::get<dispute::Verdict>(r);
  Value j = {{"winner", v.winner == dispute::Verdict::a   ? "a"
                        : v.winner == dispute::Verdict::b ? "b"
                                                          : "nobody"},
             {"reason", v.reason},
             {"details", Value::object},
             {"multiply_adds", v.cost.multiply_adds},
             {"run_multiply_adds", v.cost.run_multiply_adds},
             {"bytes_hashed", v.cost.bytes_hashed}};
  for (const auto& [what, how] : v.details) j["details"][what] = how;
  return line_of(j);
}

// A folder, or the name of a model on the hub where no file has it.
bool is_model(const std::string& name) {
  struct stat status {};
  if (::stat(name.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  return generate::is_hub_name(name.substr(0, name.find('@')));
}

// Two checkpoints by what receipts would bind of them. Names are labels.
Result<dispute::Difference> difference_of_models(const DisputeCommand& c, Console& console) {
  if (!is_model(c.file) || !is_model(c.other))
    return bad_input((is_model(c.file) ? c.other : c.file) + ": no model, and " +
                     (is_model(c.file) ? c.file : c.other) + " is one: give two models, or two files");
  if (!c.receipt.empty() || !(c.model.model_name + c.model.plan).empty())
    return bad_input("two models are compared by themselves: leave --receipt, --model-name and --plan out");
  generate::ModelOptions model;
  model.model_name = c.file;
  INVAR_TRY(const receipt::Receipt a, generate::describe_model(model, console));
  model.model_name = c.other;
  INVAR_TRY(receipt::Receipt b, generate::describe_model(model, console));
  b.model_name = a.model_name, b.revision = a.revision;
  return dispute::compare_receipts(a, b);
}

// Two receipts whose answers part: the texts of both tokens and the margin between their logits,
// if their model is here.
Status explain_parting(const DisputeCommand& c, Console& console, dispute::Difference& d) {
  auto opened = open(c, c.file, console);
  if (!opened && !c.model.model_name.empty()) return opened.error();
  if (!opened || !opened->other_model.empty()) {
    dispute::explain(*d.parting, false, {}, d);
    d.where.emplace_back("margin", "not computed: the model is not here; --model-name FOLDER names it");
    return {};
  }
  Passes passes(opened->subject, console);
  INVAR_TRY(d.parting->logits, dispute::logits_of_step(opened->subject, d.parting->step));
  dispute::explain(*d.parting, opened->subject.receipt.sampling.do_sample, opened->text_of, d);
  return {};
}

Result<dispute::Difference> difference_of_files(const DisputeCommand& c, Console& console);

Result<dispute::Difference> difference(const DisputeCommand& c, Console& console) {
  if (!c.other.empty() && (is_model(c.file) || is_model(c.other))) return difference_of_models(c, console);
  if (!c.other.empty()) return difference_of_files(c, console);
  INVAR_TRY(generate::DisputedRun run, open(c, c.file, console));
  Passes passes(run.subject, console);
  INVAR_TRY(dispute::Difference d, dispute::compare_with_machine(run.subject, run.other_model));
  if (d.parting) dispute::explain(*d.parting, run.subject.receipt.sampling.do_sample, run.text_of, d);
  return d;
}

Result<dispute::Difference> difference_of_files(const DisputeCommand& c, Console& console) {
  INVAR_TRY(const std::string a, read_file(c.file, dispute::kExchangeFile));
  INVAR_TRY(const std::string b, read_file(c.other, dispute::kExchangeFile));
  const dispute::NamedText left{a, c.file}, right{b, c.other};
  INVAR_TRY(dispute::Difference d, dispute::compare_files(left, right));
  if (c.receipt.empty() && d.parting) {
    INVAR_CHECK_OK(explain_parting(c, console, d));
    return d;
  }
  const bool receipts = a.find("\"invar-receipt ") != a.npos || generate::is_tensor_receipt(a);
  if (c.receipt.empty() && !receipts && !(c.model.model_name + c.model.plan).empty())
    return bad_input(
        "these two files are compared without a model: leave --model-name and --plan out, or give --receipt");
  if (c.receipt.empty() || d.equal) return d;
  INVAR_TRY(const generate::DisputedRun run, open_same_model(c, console));
  const auto judging = console.phase("judge");
  INVAR_CHECK_OK(dispute::decide(run.subject, left, right, d));
  judging->done("one element, by the reference kernel");
  return d;
}

int write(const DisputeCommand& c, Result<std::string> (&make)(const DisputeCommand&, Console&)) {
  Console console(false);
  OutputFolders folders;
  if (const Status made = folders.make_above("--output", c.output); !made) return fail(made.error());
  const Result<std::string> text = make(c, console);
  return text ? exit_code(deliver(c.output, *text)) : fail(text.error());
}

}  // namespace

int trace(const DisputeCommand& c) {
  return write(c, traced);
}

int answer(const DisputeCommand& c) {
  return write(c, answered);
}

int diff(const DisputeCommand& c) {
  Console console(c.json);
  confine_reader(c.model, c.execution);
  const Result<dispute::Difference> d = difference(c, console);
  if (!d) return fail(d.error());
  Value j = {{"ok", d->equal}, {"findings", Value::array}, {"cause", d->cause}, {"next", d->next}};
  for (const auto& [what, how] : d->where) j["findings"].add({{"what", what}, {"how", how}});
  if (const Status written = write_stdout(c.json ? line_of(j) : report(*d)); !written)
    return fail(written.error());
  return d->equal ? 0 : static_cast<int>(Code::failed);
}

int judge(const DisputeCommand& c) {
  Console console(c.json);
  confine_reader(c.model, c.execution, c.file);
  const Result<dispute::Ruling> r = ruling(c, console);
  if (!r) return fail(r.error());
  const auto* question = std::get_if<dispute::Question>(&*r);
  return exit_code(write_stdout(c.json     ? json_of(*r)
                                : question ? text_of(c, *question)
                                           : report(std::get<dispute::Verdict>(*r))));
}

}  // namespace invar::cli
