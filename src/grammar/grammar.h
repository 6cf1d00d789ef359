// Which tokens may come next in an answer that has to fit a schema, a regular expression, one of
// several texts or a tool call (spec/grammar.md). It decides tokens, so it is part of the numerics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::grammar {

// The bytes of every token of a tokenizer, as trees.
class Vocabulary {
 public:
  // By id. A token without bytes never comes; nor does an empty one, or one that is absent.
  explicit Vocabulary(std::vector<std::optional<std::string>> tokens);
  Vocabulary(Vocabulary&&) noexcept;
  ~Vocabulary();
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<const Impl> impl_;
};

// The tokens of a step.
struct Allowed {
  bool all = false;       // nothing is asked of this step
  bool complete = false;  // the answer so far fits, so that a stop token may come
  std::shared_ptr<const std::vector<uint64_t>> tokens = {};  // a bit for each id
  int32_t also = -1;  // a token that may come whatever its bytes are; -1: none
  bool has(int32_t token) const {
    const auto t = static_cast<size_t>(token);
    return all || token == also || (tokens && t / 64 < tokens->size() && ((*tokens)[t / 64] >> t % 64 & 1));
  }
};

// What is asked for, as a receipt binds it: an object of grammar.2, in its one spelling. Members of
// `asked` that are `null` are left out. bad_input: it is none, or nothing fits it.
Result<std::string> canonical(const json::Value& asked);
Result<std::string> canonical(std::string_view text, std::string_view name);
// The same with the tokens around reasoning (grammar.16). start: -1 where the answer begins within
// it.
std::string with_reasoning(const std::string& canonical, int32_t start, int32_t end);
// What is wrong with a text that is said to be in that spelling.
Status check(std::string_view text);
// For people: "fitting a JSON schema".
std::string describe(std::string_view canonical);

// A text in that spelling, of a vocabulary. A pure function of the answer; threads may share one.
class Constraint {
 public:
  static Result<std::shared_ptr<const Constraint>> make(std::string_view canonical,
                                                        std::shared_ptr<const Vocabulary>);
  // The tokens that may follow. bad_input: a step that is too large (grammar.20).
  Result<Allowed> after(std::span<const int32_t> answer) const;

  struct Impl;
  explicit Constraint(std::unique_ptr<Impl>);
  ~Constraint();

 private:
  const std::unique_ptr<Impl> impl_;
};

// The constraints of a model, of which the last ones are kept. Threads may share it.
class ConstraintCache {
 public:
  using MakeVocabulary = std::function<Result<Vocabulary>()>;
  ConstraintCache();
  ~ConstraintCache();
  // The vocabulary is made once, when the first constraint is asked for.
  Result<std::shared_ptr<const Constraint>> of(const std::string& canonical, const MakeVocabulary&);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace invar::grammar
