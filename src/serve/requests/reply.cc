#include "serve/requests/reply.h"

#include <ctime>
#include <utility>

#include "base/hash/random.h"
#include "base/text/json.h"
#include "generate/settings/sampling_json.h"
#include "serve/protocol/logprobs_json.h"

namespace invar::serve {
namespace {

using json::Value;

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::string random_id() {
  const auto bytes = random_bytes();
  return bytes ? to_hex(*bytes).substr(0, 24) : "0";
}

std::string sse(const Value& data) {
  return "data: " + json::dump(data) + "\n\n";
}

}  // namespace

Reply::Choice::Choice(const prompt::Tokenizer& tokenizer, const Call& call, const generate::Request& request)
    : prompt(request.prompt.text),
      prompt_ids(call.token_ids ? request.tokens : std::vector<int32_t>()),
      decoder(tokenizer),
      settings(request.settings),
      stop(settings->decoding.stop_strings, call.include_stop),
      chat(request.prompt.text, call.shows_tools()),
      place{prompt::Stream(tokenizer)} {}

Reply::Reply(Service& service, Call call, http::Responder responder, http::Headers headers)
    : service_(service),
      call_(std::move(call)),
      responder_(std::move(responder)),
      headers_(std::move(headers)),
      id_((call_.chat ? "chatcmpl-" : "cmpl-") + random_id()),
      created_(std::time(nullptr)) {
  ++service_.open_;
}

Reply::~Reply() {
  const std::lock_guard lock(service_.mutex_);
  --service_.open_;
  service_.idle_.notify_all();
}

std::optional<Problem> Reply::start(std::vector<generate::Request> requests, uint64_t client) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (generate::Request& request : requests) {
    const size_t i = choices_.size();
    choices_.emplace_back(service_.model_.folder.tokenizer, call_, request);
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    job->turn = {call_.priority, client};
    job->token = [self = shared_from_this(), i](int32_t token, const auto& logprobs) {
      self->take_token(i, token, logprobs);
    };
    job->done = [self = shared_from_this(), i](Result<generate::Answer> answer) {
      self->take_answer(i, std::move(answer));
    };
    choices_.back().job = job;
    jobs.push_back(std::move(job));
  }
  if (!service_.generator_.submit(jobs))
    return service_.closed().value_or(
        Problem{429, "too many requests wait: ask again later", "", "rate_limit_exceeded"});
  service_.text_.post([self = shared_from_this()] { self->begin(); });
  return std::nullopt;
}

// On the text thread, as all that follows. The first token may come before it.
void Reply::begin() {
  if (std::exchange(begun_, true)) return;
  responder_.on_gone([weak = weak_from_this()] {
    if (const auto reply = weak.lock()) reply->service_.text_.post([reply] { reply->gone(); });
  });
  if (!call_.stream) return;
  http::Headers headers = headers_;
  headers.insert(headers.end(), {{"content-type", "text/event-stream; charset=utf-8"},
                                 {"cache-control", "no-cache"},
                                 {"x-accel-buffering", "no"}});
  service_.metrics_.count_status(200);
  responder_.begin(200, std::move(headers), ": ping\n\n");
}

void Reply::cancel_all() {
  for (const Choice& choice : choices_)
    if (const auto job = choice.job.lock()) service_.generator_.cancel(job);
}

void Reply::gone() {
  if (std::exchange(over_, true)) return;
  ++service_.metrics_.cancelled;
  cancel_all();
}

void Reply::take_token(size_t i, int32_t token, const std::optional<sample::StepLogprobs>& logprobs) {
  begin();
  if (over_) return;
  Choice& choice = choices_[i];
  if (!choice.last)
    service_.metrics_.first_token.add(seconds_since(start_));
  else
    service_.metrics_.between_tokens.add(seconds_since(*choice.last));
  choice.last = Clock::now();
  if (call_.only_echo) return;
  if (call_.token_ids) choice.fresh.push_back(token);
  if (logprobs) choice.logprobs.push_back(*logprobs);
  take_text(choice, choice.stop.push(choice.decoder.push(token)));
  const bool news = !choice.unsent.empty() || !choice.fresh.empty() || !choice.logprobs.empty();
  if (call_.stream && news && responder_.ready()) responder_.write(events_of(i, false));
}

void Reply::take_text(Choice& choice, const std::string& piece) {
  if (call_.only_echo) return;
  ChatView::Delta delta;
  if (call_.chat)
    delta = choice.chat.push(piece);
  else
    delta.content = piece;
  ChatView::Delta& to = call_.stream ? choice.unsent : choice.whole;
  to.reasoning += delta.reasoning, to.content += delta.content;
}

void Reply::take_answer(size_t i, Result<generate::Answer> answer) {
  begin();
  if (over_) return;
  if (!answer) return fail(service_.closed().value_or(problem_of(answer.error())));
  Choice& choice = choices_[i];
  take_text(choice, choice.stop.push(choice.decoder.finish()));
  take_text(choice, choice.stop.finish());
  choice.answer = *std::move(answer);
  if (call_.chat) {
    ChatView::Delta& to = call_.stream ? choice.unsent : choice.whole;
    const ChatView::Delta rest = choice.chat.finish(choice.calls);
    to.reasoning += rest.reasoning, to.content += rest.content;
    number_calls(choice);
  }
  // Nobody hears of an answer whose receipt is not on the disk.
  service_.store_.post([self = shared_from_this(), i] {
    const Status saved = self->service_.save(*self->choices_[i].answer);
    self->service_.text_.post([self, i, saved] { self->take_saved(i, saved); });
  });
}

void Reply::take_saved(size_t i, const Status& saved) {
  if (over_) return;
  if (!saved) return fail({500, "the receipt could not be kept: " + saved.error().message, "", kNotKept});
  choices_[i].sealed = true;
  count(*choices_[i].answer);
  if (call_.stream) responder_.write(events_of(i, true));
  for (const Choice& choice : choices_)
    if (!choice.sealed) return;
  finish();
}

void Reply::count(const generate::Answer& answer) {
  Metrics& m = service_.metrics_;
  m.prompt_tokens += answer.receipt.prompt_tokens.size();
  m.generation_tokens += answer.receipt.tokens.size();
  m.count_success(answer.receipt.finish_reason);
  m.whole.add(seconds_since(start_));
}

void Reply::fail(const Problem& problem) {
  over_ = true;
  cancel_all();
  if (call_.stream) return responder_.finish(sse(json_of(problem)));
  http::Headers headers = headers_;
  headers.push_back({"content-type", "application/json"});
  if (problem.status >= 500) headers.push_back({"x-should-retry", problem.status == 503 ? "true" : "false"});
  service_.metrics_.count_status(problem.status);
  responder_.answer(problem.status, std::move(headers), json::dump(json_of(problem)));
}

void Reply::finish() {
  over_ = true;
  if (call_.stream) {
    std::string last = call_.include_usage() ? event(Value::array, true, true) : "";
    return responder_.finish(last + "data: [DONE]\n\n");
  }
  Value body = envelope("chat.completion", "text_completion");
  for (size_t i = 0; i < choices_.size(); ++i) body["choices"].add(choice_json(i));
  body["usage"] = usage();
  body["invar"] = invar();
  http::Headers headers = headers_;
  headers.push_back({"content-type", "application/json"});
  std::string receipts;
  for (const Choice& choice : choices_)
    receipts += (receipts.empty() ? "" : ", ") + choice.answer->receipt_hash;
  headers.push_back({"x-invar-receipt", receipts});
  service_.metrics_.count_status(200);
  responder_.answer(200, std::move(headers), json::dump(body));
}

// --- the JSON of it ------------------------------------------------------------------------------

Value Reply::envelope(const char* of_chat, const char* of_completion) const {
  return {{"id", id_},
          {"object", call_.chat ? of_chat : of_completion},
          {"created", created_},
          {"model", service_.name_},
          {"system_fingerprint", service_.fingerprint_},
          {"choices", Value::array}};
}

const char* Reply::finish_reason(const Choice& choice) const {
  if (choice.answer->receipt.finish_reason == "length") return "length";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

// An id of a call is new for every answer, and the same for the same one; nine digits, as templates
// of Mistral want it.
void Reply::number_calls(Choice& choice) const {
  for (size_t i = 0; i < choice.calls.items.size(); ++i)
    choice.calls.items[i]["id"] =
        to_hex(sha256(choice.answer->receipt_hash + " " + std::to_string(i))).substr(0, 9);
}

Value Reply::choice_json(size_t i) {
  Choice& choice = choices_[i];
  Value json = {{"index", i}, {"logprobs", logprobs_of(choice)}, {"finish_reason", finish_reason(choice)}};
  if (call_.token_ids)
    json["prompt_token_ids"] = choice.prompt_ids,
    json["token_ids"] = call_.only_echo ? std::vector<int32_t>() : choice.answer->receipt.tokens;
  if (!call_.chat) {
    json["text"] = (call_.echo ? choice.prompt : "") + choice.whole.content;
    return json;
  }
  Value message = {{"role", "assistant"}, {"content", choice.whole.content}, {"refusal", nullptr}};
  if (!choice.whole.reasoning.empty()) message["reasoning_content"] = choice.whole.reasoning;
  if (!choice.calls.empty()) {
    message["tool_calls"] = choice.calls;
    if (choice.whole.content.empty()) message["content"] = nullptr;
  }
  json["message"] = std::move(message);
  return json;
}

// Takes those that were not given yet. Of a prompt that is echoed its own come first, null for its
// first token.
Value Reply::logprobs_of(Choice& choice) {
  const bool echoes = call_.echo && choice.answer;
  if (!call_.sampling.logprobs || (choice.logprobs.empty() && !echoes)) return nullptr;
  LogprobsJson json(service_.model_.folder.tokenizer, call_.chat, choice.place);
  if (echoes) {
    const std::vector<int32_t>& prompt = choice.answer->receipt.prompt_tokens;
    json.add_first(prompt.front());
    for (const sample::StepLogprobs& one : choice.answer->prompt_logprobs) json.add(one);
  }
  for (const sample::StepLogprobs& one : choice.logprobs) json.add(one);
  choice.logprobs.clear();
  return json.take();
}

// What has come of a choice since the last time.
std::string Reply::events_of(size_t i, bool last) {
  Choice& choice = choices_[i];
  std::string out;
  const auto add = [&](const char* member, Value value, bool ends = false) {
    const bool opens = call_.chat && !choice.begun;  // with the role alone
    Value json = {{"index", i},
                  {member, std::move(value)},
                  {"logprobs", opens ? Value() : logprobs_of(choice)},
                  {"finish_reason", nullptr}};
    if (call_.token_ids && !choice.begun) json["prompt_token_ids"] = choice.prompt_ids;
    if (call_.token_ids && !opens) json["token_ids"] = std::exchange(choice.fresh, {});
    if (ends) json["finish_reason"] = finish_reason(choice);
    choice.begun = true;
    out += event(json::list({std::move(json)}), false, ends);
  };
  const ChatView::Delta delta = std::exchange(choice.unsent, {});
  if (!call_.chat) {
    std::string text = (call_.echo && !choice.begun ? choice.prompt : "") + delta.content;
    add("text", std::move(text), last);
    return out;
  }
  if (!choice.begun) add("delta", {{"role", "assistant"}, {"content", ""}});
  if (!delta.reasoning.empty()) add("delta", {{"reasoning_content", delta.reasoning}});
  if (!delta.content.empty()) add("delta", {{"content", delta.content}});
  if (!last) {
    if (!choice.fresh.empty() || !choice.logprobs.empty()) add("delta", Value::object);
    return out;
  }
  for (size_t n = 0; n < choice.calls.items.size(); ++n) {
    Value call = choice.calls.items[n];
    call["index"] = n;
    add("delta", {{"tool_calls", json::list({std::move(call)})}});
  }
  add("delta", Value::object, true);
  return out;
}

std::string Reply::event(Value choices, bool with_usage, bool last) const {
  Value chunk = envelope("chat.completion.chunk", "text_completion");
  const bool complete = choices.empty();
  chunk["choices"] = std::move(choices);
  if (call_.include_usage()) chunk["usage"] = with_usage ? usage() : Value();
  bool sealed = last;
  for (const Choice& choice : choices_) sealed &= choice.sealed;
  if (sealed && !complete) chunk["invar"] = invar();
  return sse(chunk);
}

Value Reply::usage() const {
  size_t prompt = 0, made = 0;
  int64_t cached = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {  // the n answers to a prompt follow one another
    const receipt::Receipt& r = choices_[i].answer->receipt;
    if (i % static_cast<size_t>(call_.n) == 0)
      prompt += r.prompt_tokens.size(), cached += choices_[i].answer->cached_tokens;
    made += r.tokens.size();
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", made},
          {"total_tokens", prompt + made},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

// What a client needs for a proof: the receipts in the order of the choices, and what they bind.
Value Reply::invar() const {
  const receipt::Receipt& first = choices_.front().answer->receipt;
  Value sampling = generate::sampling_json(first);
  sampling["max_new_tokens"] = first.max_new_tokens;
  Value receipts = Value::array;
  for (const Choice& choice : choices_) receipts.add(choice.answer->receipt_hash);
  return {{"receipts", std::move(receipts)},  {"program", to_hex(first.program)},
          {"weights", to_hex(first.weights)}, {"numerics", first.numerics},
          {"profile", first.profile},         {"sampling", std::move(sampling)}};
}

}  // namespace invar::serve
