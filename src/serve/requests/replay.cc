#include "serve/requests/replay.h"

#include <algorithm>
#include <utility>

#include "generate/settings/structured.h"

namespace invar::serve {

using receipt::Finding;

namespace {

bool looks_for_much(const receipt::Receipt& r) {
  const auto sum = [](const auto& list) {
    size_t all = 0;
    for (const auto& one : list) all += one.size();
    return all;
  };
  const auto& words = r.sampling.processors.bad_words_ids;  // of a text up to two, in as many tokens
  return r.stop_strings.size() > kMostTexts || sum(r.stop_strings) > kMostTextBytes ||
         words.size() > 2 * kMostTexts || sum(words) > 2 * kMostTextBytes;
}

}  // namespace

Replay::Replay(Service& service, http::Responder responder, http::Headers headers)
    : service_(service),
      model_(service.models_.empty() ? nullptr : service.models_.front().get()),
      responder_(std::move(responder)),
      headers_(std::move(headers)) {}

// The request that the receipt says, with findings where this server makes another of its prompt.
Result<generate::Request> Replay::compare_request() {
  const generate::Model& model = model_->model;
  receipt::Receipt mine = model.described;
  mine.model_name = claimed_.model_name, mine.revision = claimed_.revision;  // labels
  verdict_.findings = receipt::compare_model(claimed_, mine);
  if (const auto stops = generate::stop_tokens_for(model.folder, claimed_); claimed_.stop_tokens != stops)
    verdict_.findings.push_back(
        {"input.stop_tokens", json::dump(stops), json::dump(claimed_.stop_tokens), true});
  if (claimed_.decoder_tokens != model.folder.decoder_tokens)
    verdict_.findings.push_back({"input.decoder_tokens", json::dump(model.folder.decoder_tokens),
                                 json::dump(claimed_.decoder_tokens), true});
  auto settings = std::make_shared<generate::RequestSettings>();
  settings->options.previous = claimed_.previous;
  settings->decoding.stop_strings = claimed_.stop_strings;
  settings->decoding.stop_in_answer = claimed_.stop_in_answer;
  settings->decoding.stop_tokens = claimed_.stop_tokens;
  settings->decoding.stop_token_ids = claimed_.stop_token_ids;
  settings->decoding.ignore_eos = claimed_.ignore_eos;
  generate::Request request{{claimed_.prompt, std::nullopt, claimed_.chat, "the receipt"}, settings};
  INVAR_TRY(request.tokens, generate::Request::encode(model, request.prompt, "the receipt"));
  request.decoder_tokens = model.folder.decoder_tokens;
  request.max_new_tokens = claimed_.max_new_tokens, request.params = claimed_.sampling;
  INVAR_CHECK_OK(generate::bind_constraint(model.folder, request.params.processors));
  if (request.prompt.text != claimed_.prompt)
    verdict_.findings.push_back(
        {"input.prompt", json::brief(request.prompt.text), json::brief(claimed_.prompt), true});
  if (request.tokens != claimed_.prompt_tokens)
    verdict_.findings.push_back({"input.tokens", std::to_string(request.tokens.size()) + " others",
                                 std::to_string(claimed_.prompt_tokens.size()) + " tokens", true});
  return request;
}

std::optional<Problem> Replay::start(std::string_view text) {
  generate::Reader reader;
  auto read = reader.read(text, "the receipt", claimed_);
  if (!read) return Problem{400, read.error().message};
  verdict_ = *std::move(read);
  if (!verdict_.ok()) {
    finish();
    return std::nullopt;
  }
  if (claimed_.format == receipt::kTensorFormat || !claimed_.withheld.empty() || claimed_.audio != Digest{} ||
      claimed_.operation_set != name_of(OperationSet::reproducible))
    return Problem{
        400,
        "the receipt: only the receipt of an answer to a text by a reproducible program, with its prompt, "
        "can be computed again; `invar verify --audio-path` takes those of recordings",
        "", "not_covered"};
  if (looks_for_much(claimed_))
    return Problem{400,
                   "the receipt: its stop_strings or bad_words_ids are more than a server looks for; `invar "
                   "verify` takes it",
                   "", "not_covered"};
  for (const auto& model : service_.models_)  // else the first, and findings
    if (model->model.described.weights == claimed_.weights &&
        model->model.described.program == claimed_.program) {
      model_ = model.get();
      break;
    }
  if (!model_) return service_.language_model("").problem();
  auto request = compare_request();
  if (!request) return Problem{400, request.error().message};
  if (!verdict_.ok()) {
    finish();
    return std::nullopt;
  }
  if (request->positions() > model_->engine.positions())
    return Problem{400,
                   "the receipt has " + std::to_string(request->positions()) +
                       " positions, and the context of this server is " +
                       std::to_string(model_->engine.positions()),
                   "", "context_length_exceeded"};
  auto job = std::make_shared<Job>();
  job->request = *std::move(request);
  job->turn.anew = true;  // what it checks may lie in the pages of its prompt
  job->done = [self = shared_from_this()](Result<generate::Answer> answer) {
    if (answer) {
      self->compare(*answer);
    } else {
      self->verdict_.findings.push_back({"output", answer.error().message, "an answer", true});
    }
    self->finish();
  };
  job_ = job;
  if (!model_->generator.submit({job}))
    return service_.closed().value_or(
        Problem{429, "too many requests wait: ask again later", "", "rate_limit_exceeded"});
  responder_.on_gone([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (const auto running = self ? self->job_.lock() : nullptr) self->model_->generator.cancel(running);
  });
  return std::nullopt;
}

void Replay::compare(const generate::Answer& answer) {
  const receipt::Receipt& mine = answer.receipt;
  const size_t steps = std::min(mine.tokens.size(), claimed_.tokens.size());
  for (size_t i = 0; i < steps && verdict_.ok(); ++i) {
    const std::string at = "[" + std::to_string(i) + "]";
    if (mine.logits[i] != claimed_.logits[i])
      verdict_.findings.push_back(
          {"output.logits" + at, to_hex(mine.logits[i]), to_hex(claimed_.logits[i]), true});
    else if (mine.tokens[i] != claimed_.tokens[i])
      verdict_.findings.push_back(
          {"output.tokens" + at, std::to_string(mine.tokens[i]), std::to_string(claimed_.tokens[i]), true});
  }
  if (verdict_.ok() && mine.tokens.size() != claimed_.tokens.size())
    verdict_.findings.push_back({"output.tokens", std::to_string(mine.tokens.size()) + " tokens",
                                 std::to_string(claimed_.tokens.size()) + " tokens", true});
  if (verdict_.ok() && mine.text != claimed_.text)
    verdict_.findings.push_back({"output.text", json::brief(mine.text), json::brief(claimed_.text), true});
  if (verdict_.ok() && mine.finish_reason != claimed_.finish_reason)
    verdict_.findings.push_back({"output.finish_reason", mine.finish_reason, claimed_.finish_reason, true});
  receipt::Receipt whole = mine;  // with labels and salt, which nobody computes
  whole.salt = claimed_.salt, whole.model_name = claimed_.model_name, whole.revision = claimed_.revision;
  if (const Digest hash = receipt::receipt_hash(whole), said = receipt::receipt_hash(claimed_);
      verdict_.ok() && hash != said)
    verdict_.findings.push_back({"receipt_hash", to_hex(hash), to_hex(said), true});
  verdict_.add("steps", std::to_string(steps) + " computed again");
}

void Replay::finish() {
  verdict_.verdict = verdict_.ok() ? "VERIFIED" : "NOT VERIFIED";
  service_.metrics_.count_replay(verdict_.verdict);
  service_.metrics_.count_status(200);
  http::Headers headers = headers_;
  headers.push_back({"content-type", "application/json"});
  responder_.answer(200, std::move(headers), json::dump(generate::json_of(verdict_)));
}

}  // namespace invar::serve
