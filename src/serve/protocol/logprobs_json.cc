#include "serve/protocol/logprobs_json.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace invar::serve {
namespace {

// sampling.26: the shortest digits, -9999.0 for no probability at all.
json::Value number_of(float logprob) {
  json::Value number(sample::json_logprob(logprob));
  number.kind = number.text == "null" ? json::Value::null : json::Value::number;
  return number;
}

size_t code_points(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

LogprobsJson::LogprobsJson(const prompt::Tokenizer& tokenizer, bool chat, Place& place)
    : tokenizer_(tokenizer), chat_(chat), place_(place), json_(json::Value::object) {
  if (chat) {
    json_["content"] = json::Value::array, json_["refusal"] = nullptr;
    return;
  }
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    json_[name] = json::Value::array;
}

std::string LogprobsJson::text_of(int32_t token) const {
  return tokenizer_.decode(std::span(&token, 1), /*skip_special_tokens=*/false);
}

void LogprobsJson::count(int32_t token) {
  json_["tokens"].add(text_of(token));
  json_["text_offset"].add(place_.offset);
  place_.offset += code_points(place_.text.push(token));
}

void LogprobsJson::add_first(int32_t token) {
  count(token);
  json_["token_logprobs"].add(nullptr);
  json_["top_logprobs"].add(nullptr);
}

json::Value LogprobsJson::entry(const sample::TokenLogprob& of) const {
  const std::string text = text_of(of.token);
  json::Value bytes = json::Value::array;
  for (const char c : text) bytes.add(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", number_of(of.logprob)}, {"bytes", std::move(bytes)}};
}

void LogprobsJson::add(const sample::StepLogprobs& step) {
  if (chat_) {
    json::Value one = entry(step.chosen);
    json::Value& top = one["top_logprobs"] = json::Value::array;
    for (const sample::TokenLogprob& other : step.top) top.add(entry(other));
    json_["content"].add(std::move(one));
    return;
  }
  count(step.chosen.token);
  json_["token_logprobs"].add(number_of(step.chosen.logprob));
  json::Value top = json::Value::object;  // the likelier of two tokens with one text
  for (const sample::TokenLogprob& other : step.top)
    if (const std::string text = text_of(other.token); !top.contains(text))
      top[text] = number_of(other.logprob);
  if (const std::string text = text_of(step.chosen.token); !top.contains(text))
    top[text] = number_of(step.chosen.logprob);
  json_["top_logprobs"].add(std::move(top));
}

}  // namespace invar::serve
