#include "serve/requests/encode.h"

#include <algorithm>
#include <bit>
#include <ctime>
#include <iterator>
#include <span>
#include <utility>

#include "base/hash/random_bytes.h"
#include "base/text/decimal.h"

namespace invar::serve {
namespace {

using generate::EncoderOutput;
using generate::EncoderText;
using json::Value;

// The texts of a member that is a text or a list of them.
Outcome<std::vector<std::string>> texts_of(const Value& given, const std::string& param) {
  std::vector<std::string> texts;
  if (given.is_string()) return std::vector<std::string>{given.text};
  if (!given.is_array() || given.empty())
    return Problem{400, param + ": a text or a list of texts is needed, not " + shown(given), param};
  for (const Value& one : given.items) {
    if (one.is_number() || one.is_array())
      return Problem{400,
                     param +
                         ": token ids are not taken, since they may be of another model's vocabulary: send "
                         "texts (langchain: check_embedding_ctx_length=False)",
                     param, "unsupported_parameter"};
    const Value& text = one.is_object() && one.size() == 1 ? one.get("text") : one;
    if (!text.is_string()) return Problem{400, param + ": texts are needed, not " + shown(one), param};
    texts.push_back(text.text);
  }
  return texts;
}

// The digits of `invar embed --json`.
Value number_json(float v) {
  return v - v == 0 ? Value(shortest_decimal(v)) : Value();
}

std::string base64(const std::vector<float>& values) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  uint32_t bits = 0;
  int count = 0;  // of bytes in bits
  const auto give = [&](int digits) {
    for (int i = 0; i < 4; ++i) text += i < digits ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    bits = 0, count = 0;
  };
  for (const float value : values)
    for (int shift = 0; shift < 32; shift += 8) {  // little-endian
      bits |= (std::bit_cast<uint32_t>(value) >> shift & 0xFF) << (16 - 8 * count);
      if (++count == 3) give(4);
    }
  if (count > 0) give(count + 1);
  return text;
}

Value vector_json(const std::vector<float>& values, bool as_base64) {
  if (as_base64) return base64(values);
  Value list = Value::array;
  for (const float v : values) list.add(number_json(v));
  return list;
}

}  // namespace

EncoderReply::EncoderReply(Service& service, TextEncoder& encoder, Call call, http::Responder responder,
                           http::Headers headers)
    : service_(service),
      encoder_(encoder),
      call_(std::move(call)),
      responder_(std::move(responder)),
      headers_(std::move(headers)) {}

EncoderReply::~EncoderReply() {
  if (counted_) --encoder_.waiting;
}

std::optional<Problem> EncoderReply::add_pairs() {
  const bool ranks = call_.endpoint == kRerank;
  auto first = ranks ? std::vector<std::string>{call_.query} : texts_of(call_.text_1, "text_1");
  auto second = texts_of(ranks ? call_.documents : call_.text_2, ranks ? "documents" : "text_2");
  if (!first) return first.problem();
  if (!second) return second.problem();
  if (first->size() != 1 && first->size() != second->size())
    return Problem{400,
                   "text_1: one text, or as many as text_2 has, which is " + std::to_string(second->size()) +
                       ", not " + std::to_string(first->size()),
                   "text_1"};
  for (const std::string& text : *first)
    if (text.empty())
      return Problem{400, ranks ? "query: the text is empty" : "text_1: a text is empty",
                     ranks ? "query" : "text_1"};
  for (size_t i = 0; i < second->size(); ++i) {
    EncoderText pair{(*first)[first->size() == 1 ? 0 : i], std::move((*second)[i])};
    pair.name = (ranks ? "documents[" : "text_2[") + std::to_string(i) + "]";
    texts_.push_back(std::move(pair));
  }
  return std::nullopt;
}

std::optional<Problem> EncoderReply::take_texts() {
  if (call_.endpoint != kEmbeddings) {
    if (auto problem = add_pairs()) return problem;
  } else {
    if (call_.dimensions)
      if (const Status offered = encoder_.opened.model.check_dimensions(*call_.dimensions); !offered)
        return Problem{400, offered.error().message, "dimensions", "unsupported_parameter"};
    auto texts = texts_of(call_.input, "input");
    if (!texts) return texts.problem();
    for (std::string& text : *texts) {
      const std::string name = "input[" + std::to_string(texts_.size()) + "]";
      texts_.push_back({std::move(text), {}, "", name});
    }
  }
  const generate::EncoderModel& model = encoder_.opened.model;
  for (EncoderText& text : texts_) {
    text.sealed = true;
    const auto count = model.count(text);
    if (!count) return problem_of(count.error());
    if (count->cut > 0 && !call_.truncate_prompt_tokens)
      return Problem{400,
                     text.name + ": it has " + std::to_string(count->tokens + count->cut) +
                         " tokens, and the model takes " + std::to_string(count->tokens) +
                         ": shorten it, or let truncate_prompt_tokens be -1",
                     "", "context_length_exceeded"};
  }
  return std::nullopt;
}

std::optional<Problem> EncoderReply::start() {
  if (auto problem = take_texts()) return problem;
  if (encoder_.waiting >= service_.options_.queue + 1)
    return Problem{429, "too many requests wait: ask again later", "", "rate_limit_exceeded"};
  ++encoder_.waiting, counted_ = true;
  responder_.on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->gone_ = true;
  });
  encoder_.thread.post([self = shared_from_this()] { self->compute(); });
  return std::nullopt;
}

// In parts, so that a client that leaves is noticed.
void EncoderReply::compute() {
  constexpr size_t kPart = 256;
  generate::Observer observer;
  for (size_t begin = 0; begin < texts_.size(); begin += kPart) {
    if (service_.ended_) return fail(*service_.closed());
    if (gone_) {
      ++service_.metrics_.cancelled;
      return;
    }
    const auto part = std::span(texts_).subspan(begin, std::min(kPart, texts_.size() - begin));
    const auto begun = std::chrono::steady_clock::now();
    auto outputs = encoder_.opened.model.compute({part.begin(), part.end()}, observer);
    if (!outputs) return fail(problem_of(outputs.error()));
    if (call_.dimensions)
      if (const Status shorter = encoder_.opened.model.shorten(*outputs, *call_.dimensions); !shorter)
        return fail(problem_of(shorter.error()));
    for (EncoderOutput& out : *outputs) {
      if (out.problem) return fail(problem_of(*out.problem));
    }
    count(*outputs, begun);
    std::ranges::move(*outputs, std::back_inserter(outputs_));
  }
  keep();
}

// vLLM calls the end of a text that has a vector or a score "stop", too.
void EncoderReply::count(const std::vector<EncoderOutput>& outputs,
                         std::chrono::steady_clock::time_point begun) {
  using Seconds = std::chrono::duration<double>;
  const auto now = std::chrono::steady_clock::now();
  Metrics& m = service_.metrics_;
  for (const EncoderOutput& out : outputs) {
    m.count_prompt(static_cast<size_t>(out.tokens)), m.count_success("stop");
    m.count_times(Seconds(begun - start_).count(), Seconds(now - begun).count(), 0);
    m.whole.add(Seconds(now - start_).count());
  }
}

void EncoderReply::keep() {
  store::Record record = service_.new_record(headers_, encoder_.opened.name);
  std::vector<Service::ToKeep> all;
  for (const EncoderOutput& out : outputs_) {
    record.receipt = out.receipt_hash, record.prompt_tokens = out.tokens, record.status = 200;
    all.push_back({{&*out.receipt, out.receipt_hash, "", record},
                   false,
                   [self = shared_from_this()](const Status& saved) { self->take_kept(saved); }});
    ++record.choice;
  }
  service_.keep(std::move(all));
}

// On the thread of the store, once for each output.
void EncoderReply::take_kept(const Status& kept) {
  all_kept_ &= static_cast<bool>(kept);
  if (++kept_ < outputs_.size()) return;
  if (all_kept_) return finish();
  fail({503, "the receipt of the answer cannot be kept now: ask again later"});
}

void EncoderReply::fail(const Problem& problem) {
  service_.refuse(responder_, headers_, problem, json_of(problem));
}

void EncoderReply::finish() {
  Value body = call_.endpoint == kEmbeddings ? embeddings() : call_.endpoint == kRerank ? ranked() : scores();
  body["usage"] = usage(), body["invar"] = invar();
  http::Headers headers = headers_;
  headers.push_back({"content-type", "application/json"});
  std::string receipts;
  for (const EncoderOutput& out : outputs_) receipts += (receipts.empty() ? "" : ", ") + out.receipt_hash;
  // Many receipts are in the body alone: proxies take headers of some thousand bytes.
  if (outputs_.size() <= 32) headers.push_back({"x-invar-receipt", receipts});
  service_.metrics_.count_status(200);
  responder_.answer(200, std::move(headers), json::dump(body));
}

// --- the JSON of it ------------------------------------------------------------------------------

Value EncoderReply::embeddings() const {
  Value data = Value::array;
  for (size_t i = 0; i < outputs_.size(); ++i)
    data.add({{"object", "embedding"},
              {"index", i},
              {"embedding", vector_json(outputs_[i].values, call_.encoding_format == "base64")}});
  return {{"object", "list"}, {"data", std::move(data)}, {"model", encoder_.opened.name}};
}

Value EncoderReply::ranked() const {
  Value results = Value::array;
  for (const size_t i : generate::ranking(outputs_)) {
    if (call_.top_n && results.size() >= static_cast<size_t>(*call_.top_n)) break;
    Value one = {{"index", i}, {"relevance_score", number_json(outputs_[i].values[0])}};
    if (call_.return_documents) one["document"] = {{"text", *texts_[i].second}};
    results.add(std::move(one));
  }
  return {{"id", "rerank-" + outputs_.front().receipt_hash.substr(0, 24)},
          {"model", encoder_.opened.name},
          {"results", std::move(results)}};
}

Value EncoderReply::scores() const {
  Value data = Value::array;
  for (size_t i = 0; i < outputs_.size(); ++i)
    data.add({{"object", "score"}, {"index", i}, {"score", number_json(outputs_[i].values[0])}});
  return {{"id", "score-" + outputs_.front().receipt_hash.substr(0, 24)},
          {"object", "list"},
          {"created", std::time(nullptr)},
          {"model", encoder_.opened.name},
          {"data", std::move(data)}};
}

Value EncoderReply::usage() const {
  int64_t tokens = 0;
  for (const EncoderOutput& out : outputs_) tokens += out.tokens;
  return {{"prompt_tokens", tokens}, {"total_tokens", tokens}};
}

Value EncoderReply::invar() const {
  const receipt::Receipt& of = encoder_.opened.model.described();
  Value receipts = Value::array;
  for (const EncoderOutput& out : outputs_) receipts.add(out.receipt_hash);
  return {{"receipts", std::move(receipts)},
          {"program", to_hex(of.program)},
          {"weights", to_hex(of.weights)},
          {"numerics", of.numerics},
          {"profile", of.profile}};
}

void Service::encode(Asked& asked, Endpoint endpoint) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  auto call = read_call(asked.request.body, endpoint);
  if (!call) return refuse(asked, call.problem());
  const auto kind = endpoint == kEmbeddings ? generate::EncoderKind::vectors : generate::EncoderKind::scores;
  auto encoder = text_encoder(call->model, kind);
  if (!encoder) return refuse(asked, encoder.problem());
  const auto reply = std::make_shared<EncoderReply>(*this, **encoder, std::move(*call),
                                                    std::move(asked.responder), asked.headers);
  if (const auto problem = reply->start()) {
    asked.responder = reply->take_responder();
    refuse(asked, *problem);
  }
}

}  // namespace invar::serve
