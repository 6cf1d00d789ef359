// The answer to a transcription or a translation: recording -> windows -> text, with a receipt of
// each window, as `invar run --audio-path` has them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "generate/speech/segments.h"
#include "generate/speech/windows.h"
#include "http/server.h"
#include "serve/protocol/call.h"
#include "serve/service.h"

namespace invar::serve {

class SpeechReply : public std::enable_shared_from_this<SpeechReply> {
 public:
  SpeechReply(Service&, LanguageModel&, Call, http::Responder, http::Headers);
  ~SpeechReply() { service_.samples_ -= samples_; }
  // A problem: nothing has begun, and the responder is given back.
  std::optional<Problem> start(uint64_t client);
  http::Responder take_responder() { return std::move(responder_); }

 private:
  std::optional<Problem> read_windows();
  // The request of a window.
  Outcome<generate::Request> request_of(generate::Prompt) const;
  // Of the thread of texts, as what follows.
  bool submit(std::vector<generate::Request>, std::function<void(size_t, Result<generate::Answer>)>);
  void ask(int32_t language);
  void take_token(size_t window, int32_t token);
  void take_answer(size_t window, Result<generate::Answer>);
  // With timestamps, of the answer that came last: whether there is another window, which it asks.
  bool ask_next();
  void keep();
  void count(const generate::Answer&);
  void take_kept(const Status&);
  void gone();
  void cancel_all();
  Problem closed_or(Problem) const;
  void fail(const Problem&);
  void finish();
  std::string text() const;
  std::string subtitles() const;
  json::Value segments() const;
  json::Value invar() const;
  // What a stream has yet to tell of the windows up to the first that is not complete.
  void send();

  Service& service_;
  LanguageModel& model_;
  Call call_;
  http::Responder responder_;
  http::Headers headers_;
  generate::Scheduler::Turn turn_;
  size_t samples_ = 0;  // that it counts in the service
  bool timed_ = false;  // windows by timestamps (speech.12), one after another
  int64_t room_ = 0;    // tokens that an answer may have
  std::shared_ptr<const generate::RequestSettings> settings_;
  std::shared_ptr<const audio::Recording> recording_;
  std::vector<generate::Request> windows_;
  std::vector<int64_t> begins_;  // of windows: their first samples
  std::vector<std::weak_ptr<Job>> jobs_;
  std::chrono::steady_clock::time_point asked_;  // when the windows were that were asked last
  std::vector<std::optional<generate::Answer>> answers_;
  struct Heard {  // of a window whose text is streamed
    prompt::Stream decoder;
    std::string text = {};
    bool complete = false;
  };
  std::vector<Heard> heard_;
  std::string sent_;
  std::vector<generate::Segmented> segmented_;  // of answers with timestamps
  size_t answered_ = 0, kept_ = 0;
  bool all_kept_ = true, over_ = false;
  const Service::Answering answering_{service_};
};

}  // namespace invar::serve
