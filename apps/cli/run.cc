// invar run: prompts -> answers on stdout, receipts in files, what happened on stderr.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>

#include "artifacts.h"
#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "exporter/transformers_export.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/engine.h"
#include "generate/engine/execution.h"
#include "generate/settings/sampling_json.h"
#include "generate/settings/structured.h"
#include "generate/speech/segments.h"
#include "generate/speech/windows.h"
#include "generate/verify/verify.h"
#include "outputs/folders.h"
#include "outputs/user_state.h"
#include "progress/display.h"
#include "prompt/chat.h"

namespace invar::cli {
namespace {

using generate::Answer;
using json::Value;

Value json_of(const sample::TokenLogprob& t) {
  Value logprob(sample::json_logprob(t.logprob));
  logprob.kind = logprob.text == "null" ? Value::null : Value::number;
  return {{"token", t.token}, {"logprob", std::move(logprob)}};
}

Value json_of(const std::vector<sample::StepLogprobs>& steps) {
  Value list(Value::array);
  for (const sample::StepLogprobs& step : steps) {
    Value& one = list.items.emplace_back(json_of(step.chosen));
    Value& top = one["top_logprobs"] = Value(Value::array);
    for (const sample::TokenLogprob& t : step.top) top.add(json_of(t));
  }
  return list;
}

Value json_of(const std::vector<generate::Segment>& segments) {
  constexpr auto kRate = static_cast<double>(audio::kSpeechRate);
  Value list(Value::array);
  for (const generate::Segment& s : segments)
    list.add({{"start", static_cast<double>(s.begin) / kRate},
              {"end", static_cast<double>(s.end) / kRate},
              {"text", s.text},
              {"tokens", s.tokens}});
  return list;
}

Value json_of(const Answer& a, const std::string& receipt_path, const run::Session& session, bool drafts) {
  const receipt::Receipt& r = a.receipt;
  Value object = {{"text", r.text},
                  {"tokens", r.tokens},
                  {"prompt_tokens", r.prompt_tokens},
                  {"finish_reason", r.finish_reason},
                  {"receipt", receipt_path},
                  {"receipt_hash", a.receipt_hash},
                  {"prefill_seconds", a.prefill_seconds},
                  {"decode_tokens_per_second", a.decode_tokens_per_second},
                  {"sampling", generate::sampling_json(r)},
                  {"max_new_tokens", r.max_new_tokens},
                  {"isa", session.isa()},
                  {"threads", session.threads()},
                  {"kernels", session.kernels()},
                  {"libraries", session.libraries()},
                  {"operation_set", r.operation_set},
                  {"profile", r.profile},
                  {"peak_bytes", session.peak_bytes()}};
  if (drafts) object["drafted"] = a.drafted, object["accepted"] = a.accepted;
  if (!a.logprobs.empty()) object["logprobs"] = json_of(a.logprobs);
  if (!r.chat.empty()) {
    const prompt::ChatAnswer parts =
        prompt::parse_answer(r.text, prompt::begins_in_reasoning(r.prompt, r.chat));
    object["content"] = parts.content;
    object["reasoning"] = parts.reasoning;
    object["tool_calls"] = json::read_or_null(parts.tool_calls);
  }
  return object;
}

// ", 2 stop strings"
std::string stop_strings(const receipt::Receipt& r) {
  const size_t n = r.stop_strings.size();
  return n == 0 ? "" : ", " + std::to_string(n) + " stop string" + (n == 1 ? "" : "s");
}

void report(const Answer& a, const std::string& receipt_path, const run::Session& session, bool drafts,
            Console& console) {
  const receipt::Receipt& r = a.receipt;
  if (stdout_is_terminal() && !shows_events()) std::fputs("\n", stderr);
  console.note("sampling", sample::describe(r.sampling) + stop_strings(r) + ", at most " +
                               std::to_string(r.max_new_tokens) + " new tokens");
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.0f", a.decode_tokens_per_second);
  const int threads = session.threads();
  console.note("infer", std::to_string(r.tokens.size()) + " tokens, " + rate + " tokens/s (" +
                            std::string(session.isa()) + ", " + std::to_string(threads) + " thread" +
                            (threads == 1 ? ")" : "s)"));
  if (drafts) console.note("drafts", generate::describe_drafts(a.drafted, a.accepted));
  if (!r.chat.empty() && r.finish_reason == "length")
    console.note("cut", "the answer ends after " + std::to_string(r.tokens.size()) +
                            " tokens, before the model ended it; --max-new-tokens allows more");
  if (r.operation_set != name_of(OperationSet::reproducible)) {
    const std::string& libraries = r.execution.at("libraries");
    console.note("set", r.operation_set + " (" + (libraries == "none" ? "no library used" : libraries) +
                            "): not for others to verify");
  }
  console.receipt(receipt_path, a.receipt_hash);
  for (const receipt::KeySignature& s : r.signatures) console.note("signed", "by " + to_hex(s.key));
}

// Writes one answer after another.
class Answers {
 public:
  Answers(const RunCommand& c, generate::Engine& engine, std::vector<generate::Request>& requests,
          std::string kept, Console& console)
      : c_(c),
        engine_(engine),
        requests_(requests),
        count_(requests.size()),
        kept_(std::move(kept)),
        console_(console) {}
  // Each as it is computed.
  Status one_by_one();
  // Several computed together, written in the order of the prompts.
  Status together();
  // Windows of a recording, each of which begins where the one before it ends (speech.12): the
  // first is there.
  Status by_timestamps(const std::string& receipt);
  // The worst exit code of the prompts without an answer, or 0.
  int worst() const { return worst_; }
  // The state of standard output. An error of it is no reason to stop.
  const Status& written() const { return written_; }

 private:
  void write(std::string_view text) {
    if (!c_.json && written_) written_ = write_stdout(text);
  }
  bool drafts() const { return !c_.execution.speculate.empty(); }
  const std::string& path(size_t i) const { return *requests_[i].prompt.receipt_path; }
  bool refused(size_t i);
  void begin(size_t i);
  void end(size_t i, const Answer&, const std::vector<generate::Segment>* = nullptr);
  void write(const generate::Segment&);

  const RunCommand& c_;
  generate::Engine& engine_;
  std::vector<generate::Request>& requests_;
  const size_t count_;
  size_t cues_ = 0;   // of subtitles
  std::string kept_;  // what is said once, behind the first receipt
  Console& console_;
  int worst_ = 0;
  Status written_;
};

bool Answers::refused(size_t i) {
  const std::optional<Error>& problem = requests_[i].prompt.problem;
  if (!problem) return false;
  fail(*problem);
  if (worst_ == 0 || problem->code == Code::bad_input) worst_ = static_cast<int>(problem->code);
  return true;
}

void Answers::begin(size_t i) {
  if (requests_[i].prompt.recording) return;  // windows of one text
  if (count_ > 1) write("== " + path_for_stdout(path(i)) + "\n");
  if (!c_.json && stdout_is_terminal() && written_) {
    std::fputs("\n\033[1m", stdout);
    write(requests_[i].prompt.text);
    std::fputs("\033[0m", stdout);
  }
}

void Answers::write(const generate::Segment& s) {
  if (!is_shown(s)) return;
  ++cues_;
  write(c_.output_format == "srt" ? srt_of(s, cues_) : c_.output_format == "vtt" ? vtt_of(s) : timed_line(s));
}

void Answers::end(size_t i, const Answer& a, const std::vector<generate::Segment>* segments) {
  remember_receipt(path(i));
  if (console_.says_details()) {
    report(a, path(i), engine_.session(), drafts(), console_);
    if (!kept_.empty()) console_.note("kept", std::exchange(kept_, ""));
  }
  if (!c_.json || !written_) return;
  Value object = json_of(a, path(i), engine_.session(), drafts());
  if (segments) object["segments"] = json_of(*segments);
  written_ = write_stdout(line_of(object));
}

Status Answers::one_by_one() {
  for (size_t i = 0; i < count_; ++i) {
    if (refused(i)) continue;
    generate::AnswerStream stream = engine_.stream(requests_[i], console_);
    for (bool began = false;; began = true) {
      INVAR_TRY(const std::optional<std::string> piece, stream.next());
      if (!began) begin(i);  // behind the bar of the prompt's phase
      if (!piece) break;
      write(*piece);
      console_.text(i, *piece);
    }
    write("\n");
    INVAR_TRY(const Answer a, stream.finish());
    end(i, a);
  }
  return {};
}

Status Answers::by_timestamps(const std::string& receipt) {
  const generate::ModelFolder& model = engine_.model().folder;
  if (refused(0)) return {};
  const auto recording = requests_[0].prompt.recording;
  const auto samples = static_cast<int64_t>(recording->samples.size());
  if (c_.output_format == "vtt") write(generate::kWebVtt);
  for (size_t i = 0;; ++i) {
    generate::Request& request = requests_[i];
    generate::AnswerStream stream = engine_.stream(request, console_);
    for (bool more = true; more;) {
      INVAR_TRY(const std::optional<std::string> piece, stream.next());
      more = piece.has_value();
    }
    INVAR_TRY(const Answer a, stream.finish());
    const generate::Segmented found = generate::segments_of(model, a.receipt.tokens, a.receipt.stop_tokens,
                                                            request.prompt.first_sample, samples);
    for (const generate::Segment& s : found.segments) {
      write(s);
      if (is_shown(s)) console_.text(i, s.text);
    }
    end(i, a, &found.segments);
    if (found.next < 0) return {};
    INVAR_TRY(
        generate::Request next,
        generate::Request::make(engine_.model(), generate::window_at(recording, found.next, receipt, i + 2),
                                request.settings));
    next.decoder_tokens = request.decoder_tokens, next.lacks_language = false;
    request.features = {};
    INVAR_CHECK_OK(engine_.admit(next, console_));
    requests_.push_back(std::move(next));
  }
}

Status Answers::together() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::map<size_t, Answer> waiting;  // for those before them
  size_t written = 0, answers = 0, tokens = 0;
  generate::Scheduler scheduler(engine_, console_);
  std::vector<size_t> asked;  // requests by the scheduler's numbers
  for (size_t i = 0; i < count_; ++i)
    if (!requests_[i].skipped()) scheduler.add(requests_[i]), asked.push_back(i);
  for (bool more = true; more;) {
    INVAR_TRY(auto complete, scheduler.next());
    more = complete.has_value();
    if (complete) {
      ++answers, tokens += complete->answer.receipt.tokens.size();
      const size_t prompt = asked[complete->request];
      if (console_.says_details()) console_.note("answered", requests_[prompt].prompt.name);
      waiting.emplace(prompt, std::move(complete->answer));
    }
    for (; written < count_; ++written) {
      const auto found = waiting.find(written);
      if (found == waiting.end()) {
        if (refused(written)) continue;
        break;
      }
      begin(written);
      write(found->second.receipt.text + "\n");
      console_.text(written, found->second.receipt.text);
      end(written, found->second);
      waiting.erase(found);
    }
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  char text[128];
  std::snprintf(text, sizeof text, "%zu answers, %lld at a time: %zu tokens in %.2f s, %.1f tokens/s",
                answers, static_cast<long long>(engine_.session().sequences()), tokens, seconds.count(),
                static_cast<double>(tokens) / seconds.count());
  if (console_.says_details()) console_.note("batch", text);
  return {};
}

constexpr const char* kReceipt = "receipt";  // .json, without --receipt-path

Result<std::vector<generate::Prompt>> prompts_of(const RunCommand& c, const ChatOptions& chat) {
  const std::string receipt = c.receipt_path.value_or(std::string(kReceipt) + ".json");
  if (!c.audio_path.empty()) return std::vector<generate::Prompt>();  // the model says how many
  if (!c.prompt_file.empty()) {
    auto prompts = generate::read_prompt_file(file_from(c.prompt_file), receipt, chat);
    if (!prompts && prompts.error().kind == ErrorKind::not_json)
      return prompts.error().around("", "; each line is JSON, a text in quotes: \"ROMEO:\"");
    return prompts;
  }
  if (c.user) {
    INVAR_TRY(const std::string messages, messages_from("--user", *c.user));
    INVAR_TRY(std::string input, generate::chat_input(messages, "--user", chat));
    return std::vector<generate::Prompt>{{"", receipt, std::move(input), "--user"}};
  }
  if (c.messages.empty()) {
    INVAR_TRY(std::string text, text_from("--prompt-text", c.prompt_text.value_or("")));
    return std::vector<generate::Prompt>{{std::move(text), receipt}};
  }
  INVAR_TRY(const std::string messages, generate::read_chat_file(file_from(c.messages)));
  auto input = generate::chat_input(messages, c.messages, chat);
  if (!input && c.messages.ends_with(".jsonl"))
    return input.error().around("", "; --prompt-file takes a chat on each line");
  INVAR_CHECK_OK(input);
  return std::vector<generate::Prompt>{{"", receipt, *std::move(input), c.messages}};
}

// Receipts that are there stay: the new ones are receipt-2.json, or receipt-2.1.json and so on.
// What to say of it, if anything.
// `receipt` is the name that they are made of.
std::string keep_receipts(std::vector<generate::Prompt>& prompts, std::string& receipt) {
  std::string chosen = kReceipt;
  const auto path = [&](const generate::Prompt& p) {
    return chosen + p.receipt_path->substr(std::string_view(kReceipt).size());
  };
  std::error_code ec;
  for (int n = 2;
       std::ranges::any_of(prompts, [&](const auto& p) { return std::filesystem::exists(path(p), ec); }); ++n)
    chosen = std::string(kReceipt) + "-" + std::to_string(n);
  if (chosen == kReceipt) return "";
  const std::string kept = *prompts.front().receipt_path + " was there: the new receipt is " +
                           path(prompts.front()) + "; --receipt-path FILE replaces a file";
  for (generate::Prompt& p : prompts) p.receipt_path = path(p);
  receipt = chosen + ".json";
  return kept;
}

// `worst`: the exit code of bad prompts of a file whose others have answers.
Status do_run(const RunCommand& c, int& worst) {
  generate::RequestOptions options{c.sampling, c.record_model_path, c.sign, c.salt_prompt};
  options.language = c.language, options.task = c.task;
  options.timestamps = c.timestamps || c.output_format == "srt" || c.output_format == "vtt";
  INVAR_CHECK_OK(generate::take_json_options(c.json_schema, c.json_object, options.sampling));
  if (!c.previous.empty()) {
    INVAR_TRY(const receipt::Receipt before, generate::valid_receipt(c.previous));
    options.previous = receipt::receipt_hash(before);
  }
  ChatOptions chat = c.chat;
  INVAR_CHECK_OK(generate::read_tools(c.tools, chat));
  const auto n = static_cast<uint64_t>(c.n);
  if (c.sampling.stream > UINT64_MAX - (n - 1))
    return bad_input("--stream " + std::to_string(c.sampling.stream) + ": --n " + std::to_string(n) +
                     " answers need as many streams from it on: use a smaller one");
  if (c.batch_size > 1 && c.prompt_file.empty() && c.audio_path.empty() && n == 1)
    return bad_input("--batch-size is only for --prompt-file, --audio-path and --n");
  const bool timed = options.timestamps;
  if (timed && (c.batch_size > 1 || n > 1))
    return bad_input(
        "--batch-size and --n: with timestamps a window begins where the one before it ends, so "
        "they are computed one by one: leave them out");
  INVAR_TRY(std::vector<generate::Prompt> prompts, prompts_of(c, chat));
  std::shared_ptr<const audio::Recording> recording;
  if (!c.audio_path.empty()) {
    INVAR_TRY(recording, generate::read_speech_recording(file_from(c.audio_path)));
  }
  Console console(c.json);
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--receipt-path", c.receipt_path.value_or("")));
  const auto starting = generate::start(c.execution);
  INVAR_TRY(generate::ModelOptions wanted, with_export(c.model, console));
  INVAR_TRY(const auto model, generate::Model::open(std::move(wanted), console));
  std::string receipt = c.receipt_path.value_or(std::string(kReceipt) + ".json");
  if (recording && timed) {
    INVAR_CHECK_OK(generate::speech_of(*model));
    prompts = {generate::window_at(recording, 0, receipt, 1)};
  } else if (recording) {
    INVAR_TRY(prompts, generate::windows_of(*model, recording, receipt));
  }
  prompts = generate::each_of_n(prompts, n);
  const std::string kept = c.receipt_path ? "" : keep_receipts(prompts, receipt);
  INVAR_TRY(const auto settings, generate::RequestSettings::make(*model, std::move(options)));
  INVAR_TRY(std::vector<generate::Request> requests,
            generate::make_requests(*model, std::move(prompts), settings, console));
  INVAR_TRY(generate::Engine engine,
            generate::Engine::open(model, c.execution, {.batch_size = c.batch_size}, requests, console));
  INVAR_CHECK_OK(engine.hear_languages(requests));
  // A terminal that closes ends no run: the receipt is the result.
  std::signal(SIGHUP, SIG_IGN);
  Answers answers(c, engine, requests, kept, console);
  INVAR_CHECK_OK(timed                              ? answers.by_timestamps(receipt)
                 : engine.session().sequences() > 1 ? answers.together()
                                                    : answers.one_by_one());
  worst = answers.worst();
  return answers.written();
}

}  // namespace

int run(const RunCommand& c) {
  int worst = 0;
  const int code = exit_code(do_run(c, worst));
  return code ? code : worst;
}

}  // namespace invar::cli
