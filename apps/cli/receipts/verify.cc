// invar validate, invar verify: a receipt -> a verdict.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "artifacts.h"
#include "base/hash/random_bytes.h"
#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "generate/encoder/encoder.h"
#include "generate/speech/windows.h"
#include "generate/tensors/table.h"
#include "generate/tensors/tensors.h"
#include "generate/verify/verify.h"
#include "progress/display.h"
#include "progress/terminal_text.h"
#include "receipts/sandbox.h"
#include "signature/key_file.h"

namespace invar::cli {
namespace {

// The prompt and the answer, short enough for the line of one receipt among several: without what
// about() adds in parentheses.
std::string exchange_of(const generate::Verdict& v) {
  std::string prompt, answer;
  for (const auto& [what, text] : v.about)
    if (what == "prompt" || what == "answer")
      (what == "prompt" ? prompt : answer) = text.substr(0, text.rfind(" ("));
  return answer.empty() ? "" : "  " + printable(prompt) + " -> " + printable(answer);
}

// The line of one receipt among several.
std::string row_of(const std::string& receipt, const Result<generate::Verdict>& verdict) {
  std::string about;
  if (!verdict) {
    about = verdict.error().message;
  } else if (!verdict->ok()) {
    about =
        verdict->findings.front().field + " and " + std::to_string(verdict->findings.size() - 1) + " more";
    if (verdict->findings.size() == 1) about = verdict->findings.front().field;
  } else {
    about = verdict->receipt_hash;
  }
  const std::string word = verdict ? verdict->verdict : "REFUSED";
  return word + std::string(word.size() < 14 ? 14 - word.size() : 1, ' ') + printable(receipt) + "  " +
         printable(about) + (verdict ? exchange_of(*verdict) : "") + "\n";
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Lines that begin with a verdict.
void print_verdict(const std::string& lines, const Result<generate::Verdict>& verdict) {
  const size_t length = verdict ? verdict->verdict.size() : std::string_view("REFUSED").size();
  const Tone tone = !verdict || verdict->verdict.ends_with(generate::kByGivenPlan) ? Tone::doubtful
                    : verdict->ok()                                                ? Tone::good
                                                                                   : Tone::bad;
  const std::string shown = for_stream(lines, STDOUT_FILENO);
  print(painted(shown.substr(0, length), tone, STDOUT_FILENO) + shown.substr(length));
}

// The event of one receipt. `good` is the status where it holds: a receipt that is valid is not yet
// verified.
void announce(const std::string& name, const Result<generate::Verdict>& verdict, const char* good) {
  if (!shows_events() || !verdict) return;
  std::string detail;
  for (const generate::Compared& c : verdict->compared)
    if (verdict->ok() && c.caveat) detail += (detail.empty() ? "" : "; ") + c.what + ": " + c.how;
  if (!verdict->ok()) {
    detail = receipt::text_of(verdict->findings.front());
  }
  emit({{"event", "verdict"},
        {"receipt", name},
        {"status", verdict->ok() ? good : "failed"},
        {"verdict", verdict->verdict},
        {"hash", verdict->receipt_hash},
        {"detail", detail}});
}

// Prints a report for one receipt, a table for several and for batches. JSON: an object a line.
class Verdicts {
 public:
  Verdicts(bool json, const char* good) : json_(json), status_(good) {}

  void add(const std::string& name, const Result<generate::Verdict>& verdict) {
    const int code = !verdict        ? static_cast<int>(verdict.error().code)
                     : verdict->ok() ? 0
                                     : static_cast<int>(Code::failed);
    code_ = std::max(code_, code);
    good_ += code == 0;
    announce(name, verdict, status_);
    if (++count_ == 1) return (void)first_.emplace(name, verdict);  // more may follow
    if (count_ == 2) show(first_->first, first_->second);
    show(name, verdict);
  }

  // Returns the exit code that is most severe.
  int finish() {
    if (count_ > 1 && !json_)
      print(std::to_string(good_) + " of " + std::to_string(count_) + " hold\n");
    else if (count_ == 1 && !first_->second)
      refuse(first_->first, first_->second.error());
    else if (count_ == 1)
      show_one(*first_->second);
    return code_;
  }

 private:
  void refuse(const std::string& name, const Error& error) const {
    complain(error);
    if (json_) print(line_of(generate::json_of(name, error)));
  }
  void show_one(const generate::Verdict& v) const {
    if (json_) return print(line_of(generate::json_of(v)));
    print_verdict(generate::report(v), v);
  }
  void show(const std::string& name, const Result<generate::Verdict>& verdict) {
    // A person sees the row, which says the same.
    if (!verdict && !(stdout_is_terminal() && stderr_is_terminal())) complain(verdict.error());
    if (!json_ && verdict && display().verbose) return print_verdict(generate::report(*verdict), verdict);
    if (!json_) return show_row(name, verdict);
    print(line_of(verdict ? generate::json_of(*verdict) : generate::json_of(name, verdict.error())));
  }

  // Prints a row, and below it what does not fit; a text that the row before has is named alone.
  void show_row(const std::string& name, const Result<generate::Verdict>& verdict) {
    const std::string caveats = verdict ? generate::caveats(*verdict) : "";
    std::string below = caveats;
    if (!caveats.empty() && caveats == caveats_)
      below = "  also      what is said below " + printable(caveats_of_) + "\n";
    else
      caveats_ = caveats, caveats_of_ = name;
    print_verdict(row_of(name, verdict) + below, verdict);
  }

  const bool json_;
  const char* const status_;
  int code_ = 0;
  size_t count_ = 0, good_ = 0;
  std::optional<std::pair<std::string, Result<generate::Verdict>>> first_;
  std::string caveats_, caveats_of_;  // of the last row that has its own
};

int judge_all(const ReceiptCommand& c, const char* good, const generate::Reader& reader,
              const generate::Judge& judge) {
  Verdicts verdicts(c.json, good);
  for (const std::string& path : c.receipts)
    generate::judge_file(path, reader, judge,
                         [&](const auto& name, const auto& v) { verdicts.add(name, v); });
  return verdicts.finish();
}

Result<std::vector<signature::PublicKey>> required_keys(const ReceiptCommand& c) {
  std::vector<signature::PublicKey> keys;
  for (const std::string& key : c.require_keys) {
    INVAR_TRY(keys.emplace_back(), signature::read_public_key(key));
  }
  return keys;
}

// "A:B"
std::optional<std::pair<int64_t, int64_t>> range_of(const std::string& text) {
  std::pair<int64_t, int64_t> range;
  const char* const last = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), last, range.first);
  if (error != std::errc() || at == last || *at != ':') return std::nullopt;
  const auto end = std::from_chars(at + 1, last, range.second);
  return end.ec == std::errc() && end.ptr == last ? std::optional(range) : std::nullopt;
}

Result<generate::TensorProgram> tensor_program(const ReceiptCommand& c) {
  generate::TensorProgram program;
  program.plan = c.model.plan, program.model = c.onnx_model, program.choices = c.choices;
  if (!c.model.plan.empty() && !c.onnx_model.empty())
    return bad_input("--model is compiled and --plan is taken as it is: give one of them");
  INVAR_TRY(program.dims, sizes_from("--dim", c.dims));
  INVAR_TRY(program.bound, tensors_from("--bind", c.bound));
  if (c.text || c.query) program.encoder = c.model;
  return program;
}

// The tensors of --input or --table, or those that the encoder makes of the texts.
Result<run::Function::NamedTensors> given_inputs(const ReceiptCommand& c, Console& console) {
  if (!c.table.empty()) {
    if (c.onnx_model.empty())
      return bad_input("--table needs --model, the .onnx file whose inputs its columns are");
    INVAR_TRY(generate::TableEdges edges, generate::table_edges(c.onnx_model));
    INVAR_TRY(const generate::Table table, generate::read_csv(c.table));
    return generate::table_inputs(table, edges);
  }
  if (!c.text && !c.query) return tensors_from("--input", c.inputs);
  if (!c.inputs.empty() || !c.onnx_model.empty())
    return bad_input("--text and --query are for --model-name: leave --input and --model out");
  if (c.model.model_name.empty()) return bad_input("--text and --query need --model-name, the encoder");
  if (c.text.has_value() == c.query.has_value() || c.query.has_value() != c.document.has_value())
    return bad_input("give --text of a receipt of embed, or --query and --document of one of rerank");
  const generate::EncoderText text{c.text ? *c.text : *c.query, c.document};
  return generate::encoder_inputs(c.model, {c.prompt_name, c.query.has_value()}, text, console);
}

}  // namespace

int validate(const ReceiptCommand& c) {
  auto required = required_keys(c);
  if (!required) return fail(required.error());
  confine_reader();
  generate::Reader reader(std::move(*required));
  return judge_all(c, "valid", reader,
                   [&](std::string_view text, const std::string& name, const generate::InBatch* b) {
                     return reader.validate(text, name, b);
                   });
}

int verify(const ReceiptCommand& c) {
  receipt::StepSelection selection = c.selection;
  if (selection.spot > 0 && selection.salt.empty()) {  // no prover can know it before
    const auto salt = random_bytes();
    if (!salt) return fail(salt.error());
    selection.salt = to_hex(*salt).substr(0, 32);
  }
  if (!c.steps.empty()) {
    selection.range = range_of(c.steps);
    if (!selection.range)
      return fail(bad_input("--steps " + c.steps + ": two numbers of steps such as 0:64 are needed"));
  }
  auto required = required_keys(c);
  if (!required) return fail(required.error());
  const auto program = tensor_program(c);
  if (!program) return fail(program.error());
  Console console(c.json);
  confine_reader(c.model, c.execution);
  const auto inputs = given_inputs(c, console);
  if (!inputs) return fail(inputs.error());
  std::shared_ptr<const audio::Recording> recording;
  if (!c.audio_path.empty()) {
    auto read = generate::read_speech_recording(c.audio_path);
    if (!read) return fail(read.error());
    recording = *std::move(read);
  }
  generate::Verifier verifier(c.model, c.execution, console, selection, std::move(*required));
  if (recording) verifier.hear(std::move(recording));
  return judge_all(c, "verified", verifier.reader(),
                   [&](std::string_view text, const std::string& name, const generate::InBatch* batch) {
                     return generate::verify_any(text, name, batch, verifier, *program, *inputs, c.execution,
                                                 selection, console);
                   });
}

}  // namespace invar::cli
