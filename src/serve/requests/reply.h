// The answer to a request of a chat or a completion: whole or as a stream, of one prompt or
// several. All of it happens on the text thread, but for start() and gone().
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "generate/engine/stop_strings.h"
#include "http/server.h"
#include "prompt/prompt.h"
#include "serve/protocol/call.h"
#include "serve/protocol/forms/form.h"
#include "serve/protocol/logprobs_json.h"
#include "serve/protocol/views.h"
#include "serve/service.h"

namespace invar::serve {

class Reply : public std::enable_shared_from_this<Reply> {
 public:
  Reply(Service&, LanguageModel&, Call, http::Responder, http::Headers);
  // One choice of each request of this client. A problem: nothing has begun, and the responder is
  // given back.
  std::optional<Problem> start(std::vector<generate::Request>, uint64_t client);
  http::Responder take_responder() { return std::move(responder_); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    Choice(const prompt::Tokenizer&, const Call&, const generate::Request&);
    std::weak_ptr<Job> job;
    std::string prompt;
    std::vector<int32_t> prompt_ids;
    prompt::Stream decoder;
    const std::shared_ptr<const generate::RequestSettings> settings;  // of the stop texts
    generate::StopView stop;
    ChatView chat;
    ChatView::Delta unsent, whole;  // of a stream what is to be sent, else all
    json::Value calls;
    std::optional<Clock::time_point> first, last;  // when its tokens came
    std::optional<generate::Answer> answer;
    std::vector<int32_t> fresh;                  // ids that are to be sent
    std::vector<sample::StepLogprobs> logprobs;  // of a stream those that are to be sent
    LogprobsJson::Place place;
    const size_t prompt_tokens;
    size_t new_tokens = 0, reasoning_tokens = 0;
    bool begun = false, sealed = false;
    std::string key;        // of the archive, where the answer may be given again
    bool repeated = false;  // it was
  };

  void begin();
  void gone();
  void take_token(size_t choice, int32_t token, const std::optional<sample::StepLogprobs>&);
  void take_text(Choice&, const std::string& piece);
  void take_answer(size_t choice, Result<generate::Answer>);
  void take_saved(size_t choice, const Status&);
  store::Record record_of(size_t choice, int status) const;
  void keep_failure(int status);
  void fail(const Problem&);
  void cancel_all();
  void finish();
  void count(const Choice&);

  // JSON
  json::Value envelope(const char* of_whole, const char* of_chunk) const;
  json::Value choice_json(size_t choice);
  json::Value logprobs_of(Choice&);
  std::string events_of(size_t choice, bool last);
  std::string event(json::Value choices, bool with_usage = false, bool last = false);
  json::Value usage() const;
  json::Value invar() const;
  const char* finish_reason(const Choice&) const;
  std::string id_of_call(const Choice&, size_t call) const;
  void number_calls(Choice&) const;

  Service& service_;
  LanguageModel& model_;
  const Call call_;
  std::unique_ptr<Form> form_;
  http::Responder responder_;
  http::Headers headers_;
  const Clock::time_point start_ = Clock::now();
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  bool begun_ = false, over_ = false;
  const Service::Answering answering_{service_};
};

}  // namespace invar::serve
