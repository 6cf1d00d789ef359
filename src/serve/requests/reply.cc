#include "serve/requests/reply.h"

#include <ctime>
#include <utility>

#include "base/hash/random_bytes.h"
#include "base/text/json.h"
#include "generate/settings/sampling_json.h"
#include "prompt/chat.h"
#include "serve/protocol/logprobs_json.h"

namespace invar::serve {
namespace {

using json::Value;

// What proxies write in their logs where a client left.
constexpr int kClientGone = 499;

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}
double seconds_since(Clock::time_point t) {
  return seconds(Clock::now() - t);
}

std::string random_id() {
  const auto bytes = random_bytes();
  return bytes ? to_hex(*bytes).substr(0, 24) : "0";
}

}  // namespace

Reply::Choice::Choice(const prompt::Tokenizer& tokenizer, const Call& call, const generate::Request& request)
    : prompt(request.prompt.text),
      prompt_ids(call.token_ids ? request.tokens : std::vector<int32_t>()),
      decoder(tokenizer),
      settings(request.settings),
      stop(settings->decoding.stop_strings, call.include_stop),
      chat(prompt::begins_in_reasoning(request.prompt.text, request.prompt.chat), call.shows_tools()),
      place{prompt::Stream(tokenizer)},
      prompt_tokens(request.tokens.size()) {}

Reply::Reply(Service& service, LanguageModel& model, Call call, http::Responder responder,
             http::Headers headers)
    : service_(service),
      model_(model),
      call_(std::move(call)),
      responder_(std::move(responder)),
      headers_(std::move(headers)),
      id_((call_.chat ? "chatcmpl-" : "cmpl-") + random_id()),
      created_(std::time(nullptr)) {}

std::optional<Problem> Reply::start(std::vector<generate::Request> requests, uint64_t client) {
  form_ = form_of(call_, requests.front().tokens.size());
  std::vector<std::shared_ptr<Job>> jobs;
  std::vector<std::pair<size_t, generate::Answer>> repeats;
  for (generate::Request& request : requests) {
    const size_t i = choices_.size();
    choices_.emplace_back(model_.model.folder.tokenizer, call_, request);
    if (service_.archive_->repeats()) {
      const receipt::Receipt question = question_of(model_.model, request);
      choices_.back().key = to_hex(receipt::receipt_hash(question));
      // Log-probabilities are not kept.
      if (auto known = call_.sampling.logprobs ? std::nullopt : service_.archive_->repeat(question)) {
        choices_.back().repeated = true;
        repeats.emplace_back(i, *std::move(known));
        continue;
      }
    }
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
  if (!jobs.empty() && !model_.generator.submit(jobs))
    return service_.closed().value_or(
        Problem{429, "too many requests wait: ask again later", "", "rate_limit_exceeded"});
  service_.text_.post([self = shared_from_this()] { self->begin(); });
  for (auto& [i, answer] : repeats)
    service_.text_.post([self = shared_from_this(), i = i, answer = std::move(answer)] {
      ++self->service_.metrics_.repeats;
      for (const int32_t token : answer.receipt.tokens) self->take_token(i, token, std::nullopt);
      self->take_answer(i, answer);
    });
  return std::nullopt;
}

// On the text thread, as all that follows. The first token may come before it.
void Reply::begin() {
  if (std::exchange(begun_, true)) return;
  responder_.on_gone([weak = weak_from_this()] {
    if (const auto reply = weak.lock()) reply->service_.text_.post([reply] { reply->gone(); });
  });
  if (call_.stream) service_.begin_stream(responder_, headers_);
}

void Reply::cancel_all() {
  for (const Choice& choice : choices_)
    if (const auto job = choice.job.lock()) model_.generator.cancel(job);
}

void Reply::gone() {
  if (std::exchange(over_, true)) return;
  ++service_.metrics_.cancelled;
  cancel_all();
  keep_failure(kClientGone);
}

store::Record Reply::record_of(size_t i, int status) const {
  const Choice& choice = choices_[i];
  store::Record record = service_.new_record(headers_, model_.name);
  record.answer = id_, record.choice = static_cast<int64_t>(i), record.status = status;
  if (service_.archive_->records_prompts())
    record.prompt = call_.chat ? json::compact(call_.messages) : json::quote(choice.prompt);
  if (!choice.answer) return record;
  const receipt::Receipt& r = choice.answer->receipt;
  record.receipt = choice.answer->receipt_hash, record.finish_reason = r.finish_reason;
  record.prompt_tokens = static_cast<int64_t>(r.prompt_tokens.size());
  record.completion_tokens = static_cast<int64_t>(r.tokens.size());
  return record;
}

// What became of the choices that have no receipt.
void Reply::keep_failure(int status) {
  std::vector<store::Record> records;
  for (size_t i = 0; i < choices_.size(); ++i)
    if (!choices_[i].answer) records.push_back(record_of(i, status));
  service_.store_.post([archive = service_.archive_.get(), records = std::move(records)] {
    for (const store::Record& record : records) archive->keep(record);
  });
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
  if (choice.new_tokens++ == 0) choice.first = choice.last;
  if (call_.only_echo) return;
  if (call_.token_ids) choice.fresh.push_back(token);
  if (logprobs) choice.logprobs.push_back(*logprobs);
  take_text(choice, choice.stop.push(choice.decoder.push(token)));
  if (call_.chat && choice.chat.reasons()) ++choice.reasoning_tokens;
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
    // A view of the answer, as that of a stop text is: the receipt has all of its calls.
    if (!call_.parallel_calls.value_or(true) && choice.calls.size() > 1) choice.calls.items.resize(1);
    number_calls(choice);
  }
  // Nobody hears of an answer whose receipt is not on the disk.
  service_.keep({{{&choice.answer->receipt, choice.answer->receipt_hash, choice.key, record_of(i, 200)},
                  choice.repeated,
                  [self = shared_from_this(), i](const Status& saved) {
                    self->service_.text_.post([self, i, saved] { self->take_saved(i, saved); });
                  }}});
}

void Reply::take_saved(size_t i, const Status& saved) {
  if (over_) return;
  if (!saved) return fail({503, "the receipt of the answer cannot be kept now: ask again later"});
  choices_[i].sealed = true;
  count(choices_[i]);
  if (call_.stream) responder_.write(events_of(i, true));
  for (const Choice& choice : choices_)
    if (!choice.sealed) return;
  finish();
}

void Reply::count(const Choice& choice) {
  Metrics& m = service_.metrics_;
  m.count_answer(choice.answer->receipt);
  const double decode = choice.first ? seconds(*choice.last - *choice.first) : 0;
  if (choice.new_tokens > 1) m.each_token.add(decode / static_cast<double>(choice.new_tokens - 1));
  if (!choice.repeated)
    m.count_times(seconds(choice.answer->begun - start_), choice.answer->prefill_seconds, decode);
  m.whole.add(seconds_since(start_));
}

void Reply::fail(const Problem& problem) {
  over_ = true;
  cancel_all();
  keep_failure(problem.status);
  if (call_.stream) return responder_.finish(form_->error(problem));
  service_.refuse(responder_, headers_, problem,
                  call_.endpoint == kMessages ? messages_error(problem) : json_of(problem));
}

void Reply::finish() {
  over_ = true;
  if (call_.stream) {
    std::string last = call_.include_usage() ? event(Value::array, true, true) : "";
    return responder_.finish(last + form_->end());
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
  responder_.answer(200, std::move(headers), json::dump(form_->body(std::move(body))));
}

// --- the JSON of it ------------------------------------------------------------------------------

Value Reply::envelope(const char* of_chat, const char* of_completion) const {
  return {{"id", id_},
          {"object", call_.chat ? of_chat : of_completion},
          {"created", created_},
          {"model", model_.name},
          {"system_fingerprint", model_.fingerprint},
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
  if (choice.stop.found()) json["stop_reason"] = choice.stop.text();
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
  LogprobsJson json(model_.model.folder.tokenizer, call_.chat, choice.place);
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
    if (ends) {
      json["finish_reason"] = finish_reason(choice);
      if (choice.stop.found()) json["stop_reason"] = choice.stop.text();
    }
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

std::string Reply::event(Value choices, bool with_usage, bool last) {
  Value chunk = envelope("chat.completion.chunk", "text_completion");
  const bool complete = choices.empty();
  chunk["choices"] = std::move(choices);
  if (call_.include_usage()) chunk["usage"] = with_usage || call_.counts_each_piece() ? usage() : Value();
  bool sealed = last;
  for (const Choice& choice : choices_) sealed &= choice.sealed;
  if (sealed && !complete) chunk["invar"] = invar();
  return form_->chunk(chunk);
}

// Of the answers so far: of one that is not complete, the tokens that came.
Value Reply::usage() const {
  size_t prompt = 0, made = 0, from_store = 0, reasoning = 0;
  int64_t cached = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {  // the n answers to a prompt follow one another
    const Choice& choice = choices_[i];
    const size_t tokens = choice.answer ? choice.answer->receipt.tokens.size() : choice.new_tokens;
    if (i % static_cast<size_t>(call_.n) == 0)
      prompt += choice.prompt_tokens, cached += choice.answer ? choice.answer->cached_tokens : 0;
    made += tokens;
    if (choice.chat.has_reasoned()) reasoning += choice.reasoning_tokens;
    if (choice.repeated) from_store += tokens;
  }
  Value usage = {{"prompt_tokens", prompt},
                 {"completion_tokens", made},
                 {"total_tokens", prompt + made},
                 {"prompt_tokens_details", {{"cached_tokens", cached}}},
                 {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
  if (service_.archive_->repeats()) usage["completion_tokens_details"]["tokens_from_store"] = from_store;
  return usage;
}

// What a client needs for a proof: the receipts in the order of the choices, and what they bind.
Value Reply::invar() const {
  const receipt::Receipt& first = choices_.front().answer->receipt;
  Value sampling = generate::sampling_json(first);
  sampling["max_new_tokens"] = first.max_new_tokens;
  Value receipts = Value::array;
  for (const Choice& choice : choices_) receipts.add(choice.answer->receipt_hash);
  Value invar = {{"receipts", std::move(receipts)},  {"program", to_hex(first.program)},
                 {"weights", to_hex(first.weights)}, {"numerics", first.numerics},
                 {"profile", first.profile},         {"sampling", std::move(sampling)}};
  if (first.chat.find("\"date\":") != std::string::npos)  // no other chat is read
    if (const Value chat = json::read_or_null(first.chat); chat.contains("date"))
      invar["date"] = chat.get("date");
  return invar;
}

}  // namespace invar::serve
