#include "serve/requests/transcribe.h"

#include <algorithm>
#include <utility>

#include "base/text/display.h"
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

std::string event(const Value& value) {
  return "data: " + json::compact(value) + "\n\n";
}

bool is_subtitles(const Call& call) {
  return call.audio_format == "srt" || call.audio_format == "vtt";
}

// Whether the model has what is asked of it.
std::optional<Problem> check_options(const generate::SpeechModel& speech, const Call& call) {
  if (call.endpoint == kTranslations && !speech.tasks.contains("translate"))
    return Problem{400, "model: this one writes down what it hears, and does not translate", "model"};
  if (call.stream && call.audio_format != "json" && !call.audio_format.empty())
    return Problem{400, "stream: of response_format json alone, not of " + call.audio_format, "stream"};
  if (is_subtitles(call) && !speech.has_timestamps())
    return Problem{400, "response_format: subtitles need timestamps, and this model has none",
                   "response_format"};
  if (call.language.empty() || speech.languages.contains(call.language)) return std::nullopt;
  std::string known;
  for (const auto& [name, id] : speech.languages) known += (known.empty() ? "" : ", ") + name;
  return Problem{400,
                 "language: the model knows " + (known.empty() ? "one language: leave it out" : known) +
                     ", not " + excerpt(call.language),
                 "language"};
}

// Texts of windows or segments, one after another.
void join(std::string& text, std::string_view piece) {
  while (piece.starts_with(' ')) piece.remove_prefix(1);
  while (piece.ends_with(' ')) piece.remove_suffix(1);
  if (!text.empty() && !piece.empty()) text += ' ';
  text += piece;
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
  recording_ = *recording;
  samples_ = recording_->samples.size();
  timed_ =
      is_subtitles(call_) || (call_.audio_format == "verbose_json" && model.folder.speech->has_timestamps());
  if ((service_.samples_ += samples_) > 2 * kMostSamples && service_.samples_ > samples_)
    return busy("recordings are being heard");
  generate::RequestOptions options;
  options.sampling = call_.sampling;
  options.sampling.seed = call_.seed.value_or(Service::random_seed());
  options.language = call_.language;
  if (call_.endpoint == kTranslations) options.task = "translate";
  options.timestamps = timed_;
  auto settings = generate::RequestSettings::make(model, std::move(options));
  if (!settings) return problem_of(settings.error());
  settings_ = *std::move(settings);
  auto prompts = timed_ ? std::vector{generate::window_at(recording_, 0, "", 1)}
                        : generate::windows_of(model, recording_, "");
  if (!prompts) return problem_of(prompts.error());
  const size_t most = service_.options_.queue + static_cast<size_t>(model_.engine.session().sequences());
  if (prompts->size() > most)
    return Problem{400,
                   "file: the recording has " + std::to_string(prompts->size()) +
                       " windows, and this server takes " + std::to_string(most) +
                       " at once: send it in parts",
                   "file"};
  const auto start = model.folder.speech->answer_start(call_.language, "", timed_);
  if (!start) return problem_of(start.error());
  room_ = model_.engine.positions() - static_cast<int64_t>(start->size());
  if (room_ < 1 || call_.sampling.max_new_tokens.value_or(0) > room_)
    return Problem{400,
                   "max_completion_tokens: an answer of this server has at most " +
                       std::to_string(std::max<int64_t>(room_, 0)) + " tokens",
                   "max_completion_tokens", "context_length_exceeded"};
  for (generate::Prompt& prompt : *prompts) {
    begins_.push_back(prompt.first_sample);
    auto made = request_of(std::move(prompt));
    if (!made) return made.problem();
    windows_.push_back(std::move(*made));
  }
  return std::nullopt;
}

Outcome<generate::Request> SpeechReply::request_of(generate::Prompt prompt) const {
  prompt.receipt_path.reset();
  auto made = generate::Request::make(model_.model, std::move(prompt), {}, settings_, "the recording");
  if (!made) return problem_of(made.error());
  made->limit(room_);
  return *std::move(made);
}

bool SpeechReply::submit(std::vector<generate::Request> requests,
                         std::function<void(size_t, Result<generate::Answer>)> done) {
  std::vector<std::shared_ptr<Job>> jobs;
  jobs_.clear(), asked_ = std::chrono::steady_clock::now();
  for (generate::Request& request : requests) {
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    job->turn = turn_;
    if (!heard_.empty())
      job->token = [self = shared_from_this(), i = jobs.size()](int32_t token, const auto&) {
        self->take_token(i, token);
      };
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
    if (self->call_.stream) self->service_.begin_stream(self->responder_, self->headers_);
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
  for (size_t i = 0; call_.stream && i < windows_.size(); ++i)
    heard_.push_back({prompt::Stream(model_.model.folder.tokenizer)});
  const auto done = [self = shared_from_this()](size_t i, Result<generate::Answer> answer) {
    self->take_answer(i, std::move(answer));
  };
  if (!submit(std::exchange(windows_, {}), done)) fail(closed_or(busy("requests wait")));
}

void SpeechReply::take_token(size_t i, int32_t token) {
  if (over_) return;
  heard_[i].text += heard_[i].decoder.push(token);
  if (responder_.ready()) send();
}

void SpeechReply::send() {
  std::string all;
  for (const Heard& window : heard_) {
    join(all, window.text);
    if (!window.complete) break;
  }
  if (all.size() <= sent_.size()) return;
  responder_.write(event({{"type", "transcript.text.delta"}, {"delta", all.substr(sent_.size())}}));
  sent_ = std::move(all);
}

void SpeechReply::take_answer(size_t i, Result<generate::Answer> answer) {
  if (over_) return;
  if (!answer) return fail(closed_or(problem_of(answer.error())));
  answers_[i] = *std::move(answer);
  count(*answers_[i]);
  if (!heard_.empty()) heard_[i].text = answers_[i]->receipt.text, heard_[i].complete = true, send();
  if (++answered_ == answers_.size() && !(timed_ && ask_next())) keep();
}

bool SpeechReply::ask_next() {
  const receipt::Receipt& r = answers_.back()->receipt;
  segmented_.push_back(generate::segments_of(model_.model.folder, r.tokens, r.stop_tokens, begins_.back(),
                                             static_cast<int64_t>(samples_)));
  const int64_t next = segmented_.back().next;
  if (next < 0) return false;
  // The spectrum takes a while, and other texts need not wait for it.
  service_.recordings_.post([self = shared_from_this(), next, i = answers_.size(), start = r.decoder_tokens] {
    auto made = std::make_shared<Outcome<generate::Request>>(
        self->request_of(generate::window_at(self->recording_, next, "", i + 1)));
    self->service_.text_.post([self, made, i, start] {
      if (self->over_) return;
      if (!*made) return self->fail(self->closed_or(made->problem()));
      (*made)->decoder_tokens = start, (*made)->lacks_language = false;
      std::vector<generate::Request> one;
      one.push_back(std::move(**made));
      const auto done = [self, i](size_t, Result<generate::Answer> answer) {
        self->take_answer(i, std::move(answer));
      };
      if (!self->submit(std::move(one), done)) self->fail(self->closed_or(busy("requests wait")));
    });
  });
  begins_.push_back(next), answers_.emplace_back();
  return true;
}

void SpeechReply::keep() {
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
  }
  service_.keep(std::move(all));
}

// A window is an answer.
void SpeechReply::count(const generate::Answer& answer) {
  using Seconds = std::chrono::duration<double>;
  Metrics& m = service_.metrics_;
  m.count_answer(answer.receipt);
  const double queued = Seconds(answer.begun - asked_).count(), first = answer.prefill_seconds;
  const double each = answer.decode_tokens_per_second > 0 ? 1 / answer.decode_tokens_per_second : 0;
  const size_t later = answer.receipt.tokens.empty() ? 0 : answer.receipt.tokens.size() - 1;
  m.count_times(queued, first, each * static_cast<double>(later));
  m.first_token.add(queued + first);
  if (later > 0) m.each_token.add(each);
  m.whole.add(Seconds(std::chrono::steady_clock::now() - asked_).count());
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
  if (call_.stream) return responder_.finish(event(json_of(problem)));
  service_.refuse(responder_, headers_, problem, json_of(problem));
}

void SpeechReply::finish() {
  over_ = true;
  const double seconds = static_cast<double>(samples_) / kRate;
  const Value usage = {{"type", "duration"}, {"seconds", seconds}};
  if (call_.stream)
    return responder_.finish(
        event({{"type", "transcript.text.done"}, {"text", text()}, {"usage", usage}, {"invar", invar()}}));
  std::string receipts;
  for (const auto& answer : answers_) receipts += (receipts.empty() ? "" : ", ") + answer->receipt_hash;
  http::Headers headers = headers_;
  // Many receipts are in the body alone: proxies take headers of some thousand bytes.
  if (answers_.size() <= 32) headers.push_back({"x-invar-receipt", receipts});
  service_.metrics_.count_status(200);
  if (call_.audio_format == "text" || is_subtitles(call_)) {
    headers.push_back({"content-type", "text/plain; charset=utf-8"});
    return responder_.answer(200, std::move(headers), is_subtitles(call_) ? subtitles() : text() + "\n");
  }
  Value body = {{"text", text()}};
  if (call_.audio_format == "verbose_json") {
    const std::vector<int32_t>& begun = answers_.front()->receipt.decoder_tokens;
    body["task"] = call_.endpoint == kTranslations ? "translate" : "transcribe";
    for (const auto& [name, id] : model_.model.folder.speech->languages)
      if (begun.size() > 1 && begun[1] == id) body["language"] = name;
    body["duration"] = seconds, body["segments"] = segments();
  }
  body["usage"] = usage;
  body["invar"] = invar();
  headers.push_back({"content-type", "application/json"});
  responder_.answer(200, std::move(headers), json::dump(body));
}

// --- the JSON of it ------------------------------------------------------------------------------

std::string SpeechReply::text() const {
  std::string all;
  if (!timed_)
    for (const auto& answer : answers_) join(all, answer->receipt.text);
  for (const generate::Segmented& window : segmented_)
    for (const generate::Segment& s : window.segments) join(all, s.text);
  return all;
}

std::string SpeechReply::subtitles() const {
  const bool srt = call_.audio_format == "srt";
  std::string all = srt ? "" : generate::kWebVtt;
  size_t cues = 0;
  for (const generate::Segmented& window : segmented_)
    for (const generate::Segment& s : window.segments)
      if (is_shown(s)) all += srt ? srt_of(s, ++cues) : vtt_of(s);
  return all;
}

// Without timestamps a segment is a window.
Value SpeechReply::segments() const {
  Value list = Value::array;
  for (size_t i = 0; i < answers_.size(); ++i) {
    const receipt::Receipt& r = answers_[i]->receipt;
    const bool last = i + 1 == begins_.size();
    const std::vector<generate::Segment> window{
        {begins_[i], last ? static_cast<int64_t>(samples_) : begins_[i + 1], r.tokens, r.text}};
    for (const generate::Segment& s : timed_ ? segmented_[i].segments : window)
      list.add({{"id", list.size()},
                {"seek", static_cast<int64_t>(static_cast<double>(begins_[i]) / kFrame)},
                {"start", static_cast<double>(s.begin) / kRate},
                {"end", static_cast<double>(s.end) / kRate},
                {"text", s.text},
                {"tokens", s.tokens},
                {"temperature", r.sampling.do_sample ? static_cast<double>(r.sampling.temperature) : 0.0}});
  }
  return list;
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
