#include "serve/requests/transcribe.h"

#include <algorithm>
#include <utility>

#include "base/text/utf8.h"
#include "generate/settings/sampling_json.h"
#include "http/form.h"

namespace invar::serve {
namespace {

using json::Value;

// Samples at 16,000 a second, about 35 minutes; a file of FLAC may have many more than it has
// bytes. All requests together have twice as many.
constexpr size_t kMostSamples = size_t{1} << 25;
constexpr size_t kMostBytes = size_t{1} << 28;  // of files that wait to be read
constexpr double kRate = 16000, kFrame = 160;

// The members of a form, as those of an object of JSON.
Outcome<Call> read_form_call(const http::Request& request, Endpoint endpoint) {
  const auto parts = http::read_form(request.header("content-type"), request.body);
  if (!parts) return Problem{400, parts.error().message};
  Value members = Value::object;
  for (const http::FormPart& part : *parts) {
    const bool is_file = part.name == "file";
    if (part.file_name && !is_file)
      return Problem{400, part.name + ": a text is needed, not a file", part.name};
    if (!is_file && valid_prefix(part.content) < part.content.size())
      return Problem{400, part.name + ": the text is no UTF-8", part.name};
    add_form_member(members, part.name, std::string(part.content), endpoint);
  }
  return read_members(std::move(members), endpoint);
}

Problem busy(const char* what) {
  return {429, std::string("too many ") + what + ": ask again later", "", "rate_limit_exceeded"};
}

// Whether the model has what is asked of it.
std::optional<Problem> check_options(const generate::SpeechModel& speech, const Call& call) {
  if (call.endpoint == kTranslations && !speech.tasks.contains("translate"))
    return Problem{400, "model: this one writes down what it hears, and does not translate", "model"};
  if (call.language.empty() || speech.languages.contains(call.language)) return std::nullopt;
  std::string known;
  for (const auto& [name, id] : speech.languages) known += (known.empty() ? "" : ", ") + name;
  return Problem{400,
                 "language: the model knows " + (known.empty() ? "one language: leave it out" : known) +
                     ", not " + std::string(json::brief(call.language)),
                 "language"};
}

// Texts of windows, one after another.
std::string joined(const std::vector<std::optional<generate::Answer>>& answers) {
  std::string text;
  for (const auto& answer : answers) {
    std::string_view piece = answer->receipt.text;
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    if (!text.empty() && !piece.empty()) text += ' ';
    text += piece;
  }
  return text;
}

}  // namespace

SpeechReply::SpeechReply(Service& service, LanguageModel& model, Call call, http::Responder responder,
                         http::Headers headers)
    : service_(service),
      model_(model),
      call_(std::move(call)),
      responder_(std::move(responder)),
      headers_(std::move(headers)) {}

std::optional<Problem> SpeechReply::read_windows() {
  const generate::Model& model = model_.model;
  if (auto problem = check_options(*model.folder.speech, call_)) return problem;
  const auto recording = generate::speech_recording_of(call_.file, "file", kMostSamples);
  if (!recording) {
    Problem problem = problem_of(recording.error());
    problem.param = "file";
    return problem;
  }
  call_.file.clear();
  samples_ = (*recording)->samples.size();
  if ((service_.samples_ += samples_) > 2 * kMostSamples && service_.samples_ > samples_)
    return busy("recordings are being heard");
  generate::RequestOptions options;
  options.sampling = call_.sampling;
  options.sampling.seed = call_.seed.value_or(Service::random_seed());
  options.language = call_.language;
  if (call_.endpoint == kTranslations) options.task = "translate";
  const auto settings = generate::RequestSettings::make(model, std::move(options));
  if (!settings) return problem_of(settings.error());
  auto prompts = generate::windows_of(model, *recording, "");
  if (!prompts) return problem_of(prompts.error());
  const size_t most = service_.options_.queue + static_cast<size_t>(model_.engine.session().sequences());
  if (prompts->size() > most)
    return Problem{400,
                   "file: the recording has " + std::to_string(prompts->size()) +
                       " windows, and this server takes " + std::to_string(most) +
                       " at once: send it in parts",
                   "file"};
  const auto start = model.folder.speech->answer_start(call_.language, "");
  if (!start) return problem_of(start.error());
  const int64_t room = model_.engine.positions() - static_cast<int64_t>(start->size());
  if (room < 1 || call_.sampling.max_new_tokens.value_or(0) > room)
    return Problem{400,
                   "max_completion_tokens: an answer of this server has at most " +
                       std::to_string(std::max<int64_t>(room, 0)) + " tokens",
                   "max_completion_tokens", "context_length_exceeded"};
  for (generate::Prompt& prompt : *prompts) {
    prompt.receipt_path.reset();
    begins_.push_back(prompt.first_sample);
    auto made = generate::Request::make(model, std::move(prompt), {}, *settings, "the recording");
    if (!made) return problem_of(made.error());
    made->max_new_tokens = std::min(made->max_new_tokens, room);
    windows_.push_back(*std::move(made));
  }
  return std::nullopt;
}

bool SpeechReply::submit(std::vector<generate::Request> requests,
                         std::function<void(size_t, Result<generate::Answer>)> done) {
  std::vector<std::shared_ptr<Job>> jobs;
  jobs_.clear();
  for (generate::Request& request : requests) {
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    job->turn = turn_;
    job->done = [done, i = jobs.size()](Result<generate::Answer> answer) { done(i, std::move(answer)); };
    jobs_.push_back(job);
    jobs.push_back(std::move(job));
  }
  return model_.generator.submit(jobs);
}

std::optional<Problem> SpeechReply::start(uint64_t client) {
  if (auto problem = read_windows()) return problem;
  turn_ = {call_.priority, client};
  responder_.on_gone([weak = weak_from_this()] {
    if (const auto reply = weak.lock()) reply->service_.text_.post([reply] { reply->gone(); });
  });
  service_.text_.post([self = shared_from_this()] {
    if (self->over_) return;
    generate::Request& first = self->windows_.front();
    if (!first.lacks_language) return self->ask(-1);
    // The model hears the language in the first window (speech.8).
    const auto heard = [self](size_t, Result<generate::Answer> answer) {
      if (self->over_) return;
      if (!answer) return self->fail(self->closed_or(problem_of(answer.error())));
      self->ask(answer->receipt.tokens.front());
    };
    if (!self->submit({generate::hearing_of(*self->model_.model.folder.speech, first)}, heard))
      self->fail(self->closed_or(busy("requests wait")));
  });
  return std::nullopt;
}

void SpeechReply::ask(int32_t language) {
  for (generate::Request& window : windows_)
    if (std::exchange(window.lacks_language, false)) window.decoder_tokens[1] = language;
  answers_.resize(windows_.size());
  const auto done = [self = shared_from_this()](size_t i, Result<generate::Answer> answer) {
    self->take_answer(i, std::move(answer));
  };
  if (!submit(std::exchange(windows_, {}), done)) fail(closed_or(busy("requests wait")));
}

void SpeechReply::take_answer(size_t i, Result<generate::Answer> answer) {
  if (over_) return;
  if (!answer) return fail(closed_or(problem_of(answer.error())));
  answers_[i] = *std::move(answer);
  if (++answered_ < answers_.size()) return;
  store::Record record = service_.new_record(headers_, model_.name);
  std::vector<Service::ToKeep> all;
  for (const auto& one : answers_) {
    record.receipt = one->receipt_hash, record.status = 200,
    record.finish_reason = one->receipt.finish_reason;
    record.completion_tokens = static_cast<int64_t>(one->receipt.tokens.size());
    all.push_back({{&one->receipt, one->receipt_hash, "", record},
                   false,
                   [self = shared_from_this()](const Status& saved) {
                     self->service_.text_.post([self, saved] { self->take_kept(saved); });
                   }});
    ++record.choice;
    service_.metrics_.generation_tokens += one->receipt.tokens.size();
    service_.metrics_.count_success(one->receipt.finish_reason);
  }
  service_.keep(std::move(all));
}

void SpeechReply::take_kept(const Status& kept) {
  all_kept_ &= static_cast<bool>(kept);
  if (++kept_ < answers_.size() || over_) return;
  if (all_kept_) return finish();
  fail({503, "the receipt of the answer cannot be kept now: ask again later"});
}

void SpeechReply::gone() {
  if (std::exchange(over_, true)) return;
  ++service_.metrics_.cancelled;
  cancel_all();
}

void SpeechReply::cancel_all() {
  for (const auto& weak : jobs_)
    if (const auto job = weak.lock()) model_.generator.cancel(job);
}

Problem SpeechReply::closed_or(Problem problem) const {
  return service_.closed().value_or(std::move(problem));
}

void SpeechReply::fail(const Problem& problem) {
  over_ = true;
  cancel_all();
  service_.refuse(responder_, headers_, problem, json_of(problem));
}

void SpeechReply::finish() {
  over_ = true;
  std::string receipts, text = joined(answers_);
  for (const auto& answer : answers_) receipts += (receipts.empty() ? "" : ", ") + answer->receipt_hash;
  http::Headers headers = headers_;
  // Many receipts are in the body alone: proxies take headers of some thousand bytes.
  if (answers_.size() <= 32) headers.push_back({"x-invar-receipt", receipts});
  service_.metrics_.count_status(200);
  if (call_.audio_format == "text") {
    headers.push_back({"content-type", "text/plain; charset=utf-8"});
    return responder_.answer(200, std::move(headers), text + "\n");
  }
  const double seconds = static_cast<double>(samples_) / kRate;
  Value body = {{"text", std::move(text)}};
  if (call_.audio_format == "verbose_json") {
    const std::vector<int32_t>& begun = answers_.front()->receipt.decoder_tokens;
    body["task"] = call_.endpoint == kTranslations ? "translate" : "transcribe";
    for (const auto& [name, id] : model_.model.folder.speech->languages)
      if (begun.size() > 1 && begun[1] == id) body["language"] = name;
    body["duration"] = seconds, body["segments"] = Value::array;
    for (size_t i = 0; i < answers_.size(); ++i) body["segments"].add(segment(i));
  }
  body["usage"] = {{"type", "duration"}, {"seconds", seconds}};
  body["invar"] = invar();
  headers.push_back({"content-type", "application/json"});
  responder_.answer(200, std::move(headers), json::dump(body));
}

// --- the JSON of it ------------------------------------------------------------------------------

// A segment is a window: no timestamps are asked of the model.
Value SpeechReply::segment(size_t i) const {
  const receipt::Receipt& r = answers_[i]->receipt;
  const auto begin = static_cast<double>(begins_[i]);
  const auto end =
      i + 1 < begins_.size() ? static_cast<double>(begins_[i + 1]) : static_cast<double>(samples_);
  return {{"id", i},
          {"seek", static_cast<int64_t>(begin / kFrame)},
          {"start", begin / kRate},
          {"end", end / kRate},
          {"text", r.text},
          {"tokens", r.tokens},
          {"temperature", r.sampling.do_sample ? static_cast<double>(r.sampling.temperature) : 0.0}};
}

Value SpeechReply::invar() const {
  const receipt::Receipt& first = answers_.front()->receipt;
  Value sampling = generate::sampling_json(first), receipts = Value::array;
  sampling["max_new_tokens"] = first.max_new_tokens;
  for (const auto& answer : answers_) receipts.add(answer->receipt_hash);
  return {{"receipts", std::move(receipts)},  {"program", to_hex(first.program)},
          {"weights", to_hex(first.weights)}, {"numerics", first.numerics},
          {"profile", first.profile},         {"sampling", std::move(sampling)}};
}

void Service::transcribe(Asked& asked, Endpoint endpoint) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  auto call = read_form_call(asked.request, endpoint);
  if (!call) return refuse(asked, call.problem());
  auto model = language_model(call->model, /*of_recordings=*/true);
  if (!model) return refuse(asked, model.problem());
  const size_t bytes = call->file.size();
  if ((waiting_bytes_ += bytes) > kMostBytes) {
    waiting_bytes_ -= bytes;
    return refuse(asked, busy("recordings wait"));
  }
  asked.request.body.clear(), asked.request.body.shrink_to_fit();
  const uint64_t client = client_of(asked.request);
  auto shared = std::make_shared<Asked>(std::move(asked));
  const auto reply = std::make_shared<SpeechReply>(*this, **model, std::move(*call),
                                                   std::move(shared->responder), shared->headers);
  recordings_.post([this, reply, shared, client, bytes] {
    waiting_bytes_ -= bytes;
    if (const auto problem = reply->start(client)) {
      shared->responder = reply->take_responder();
      refuse(*shared, *problem);
    }
  });
}

}  // namespace invar::serve
