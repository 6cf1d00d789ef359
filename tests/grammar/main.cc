// invar_grammar_probe: answers requests until standard input ends, a line of JSON each.
//   {"asked": what an answer has to fit, "tokens": [bytes in hexadecimal, ...] (without it token i
//    is the byte i), "texts": [bytes in hexadecimal, ...], "answers": [ids, ...], "walks": n,
//    "most": m, "seed": s}
//   -> {"fits": a boolean for each text, "masks": [allowed ids; -1: it may end] for each answer,
//       "walks": the bytes of n walks of at most m tokens, null where one did not end}
//   or {"error": the message}
#include <iostream>
#include <random>
#include <string>

#include "grammar/grammar.h"

namespace {

using invar::Result;
using invar::grammar::Constraint;
using invar::json::Value;

int digit(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}
std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}
std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes)
    for (const int d : {static_cast<uint8_t>(c) >> 4, c & 15}) hex += "0123456789abcdef"[d];
  return hex;
}

struct Probe {
  std::vector<std::string> tokens;
  std::shared_ptr<const Constraint> constraint;

  Result<bool> fits(const std::string& text) const {
    std::vector<int32_t> answer;
    for (const char c : text) {
      INVAR_TRY(const auto allowed, constraint->after(answer));
      answer.push_back(static_cast<uint8_t>(c));
      if (!allowed.has(answer.back())) return false;
    }
    INVAR_TRY(const auto allowed, constraint->after(answer));
    return allowed.complete;
  }
  Result<Value> mask(const Value& ids) const {
    std::vector<int32_t> answer;
    for (const Value& id : ids.items) answer.push_back(static_cast<int32_t>(id.to_int64()));
    INVAR_TRY(const auto allowed, constraint->after(answer));
    Value may = Value::array;
    if (allowed.complete) may.add(-1);
    for (int32_t t = 0; t < static_cast<int32_t>(tokens.size()); ++t)
      if (allowed.has(t)) may.add(t);
    return may;
  }
  // Ends with probability 1/4 where it may; after `most` tokens it takes the shortest ones.
  Result<Value> walk(size_t most, std::mt19937_64& random) const {
    std::vector<int32_t> answer;
    std::string text;
    while (answer.size() < most) {
      INVAR_TRY(const auto allowed, constraint->after(answer));
      std::vector<int32_t> may;
      for (int32_t t = 0; t < static_cast<int32_t>(tokens.size()); ++t)
        if (allowed.has(t)) may.push_back(t);
      if (allowed.complete && (may.empty() || random() % 4 == 0)) return Value(hex_of(text));
      if (may.empty()) return invar::bad_input("a dead end after " + text);
      // What closes comes more often than chance has it, so that walks end.
      int32_t next = may[random() % may.size()];
      for (const int32_t t : may)
        if (tokens[static_cast<size_t>(t)].find_first_of("\"}]") != std::string::npos && random() % 3 == 0)
          next = t;
      answer.push_back(next);
      text += tokens[static_cast<size_t>(next)];
    }
    return Value();
  }
};

Result<Value> answer_to(const Value& request) {
  Probe probe;
  for (const Value& t : request.get("tokens").items) probe.tokens.push_back(bytes_of(t.text));
  for (int b = 0; !request.contains("tokens") && b < 256; ++b)
    probe.tokens.emplace_back(1, static_cast<char>(b));
  INVAR_TRY(const std::string text, invar::grammar::canonical(request.get("asked")));
  INVAR_CHECK_OK(invar::grammar::check(text));
  INVAR_TRY(probe.constraint, Constraint::make(text, std::make_shared<const invar::grammar::Vocabulary>(
                                                         std::vector<std::optional<std::string>>(
                                                             probe.tokens.begin(), probe.tokens.end()))));
  Value fits = Value::array, masks = Value::array, walks = Value::array;
  for (const Value& one : request.get("texts").items) {
    INVAR_TRY(const bool fit, probe.fits(bytes_of(one.text)));
    fits.add(fit);
  }
  for (const Value& one : request.get("answers").items) {
    INVAR_TRY(Value mask, probe.mask(one));
    masks.add(std::move(mask));
  }
  std::mt19937_64 random(request.get("seed").to_uint64());
  for (int64_t i = 0; i < request.get("walks").to_int64(); ++i) {
    INVAR_TRY(Value walk, probe.walk(static_cast<size_t>(request.get("most").to_int64()), random));
    walks.add(std::move(walk));
  }
  return Value{{"fits", fits}, {"masks", masks}, {"walks", walks}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = invar::json::parse(line, "the request");
    const Result<Value> answer = request ? answer_to(*request) : Result<Value>(request.error());
    std::cout << invar::json::dump(answer ? *answer : Value{{"error", answer.error().message}}) << std::endl;
  }
}
