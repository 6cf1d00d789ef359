#include "generate/engine/accuracy.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "num/env.h"

namespace invar::generate {
namespace {

using Row = std::span<const float>;

double loss_of(Row logits, int32_t token) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  return most + std::log(sum) - logits[static_cast<size_t>(token)];
}

int64_t most_likely(Row logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

Status check(const std::vector<int32_t>& tokens, int64_t vocab, size_t i) {
  const std::string which = "prompt " + std::to_string(i + 1);
  if (tokens.size() < 2)
    return bad_input(which + ": " + std::to_string(tokens.size()) +
                     " tokens, where a loss needs two or more");
  for (const int32_t t : tokens)
    if (t < 0 || t >= vocab)
      return bad_input(which + ": token " + std::to_string(t) + " is outside the vocabulary of " +
                       std::to_string(vocab));
  return {};
}

}  // namespace

Result<Accuracy> compare_accuracy(run::Session& fp32, run::Session& other,
                                  std::span<const std::vector<int32_t>> sequences,
                                  const std::function<void(int64_t)>& done) {
  const num::ArithmeticEnv env;
  Accuracy a;
  const auto vocab = static_cast<size_t>(fp32.vocab());
  double difference = 0, norm = 0, losses = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& tokens = sequences[i];
    INVAR_CHECK_OK(check(tokens, fp32.vocab(), i));
    fp32.reset(), other.reset();
    INVAR_TRY(const Row all, fp32.step(tokens, /*all=*/true));
    INVAR_TRY(const Row others, other.step(tokens, /*all=*/true));
    for (size_t k = 0; k < all.size(); ++k) {
      const double x = all[k], d = others[k] - x;
      difference += d * d, norm += x * x;
    }
    for (size_t t = 0; t < tokens.size(); ++t) {
      const Row row = all.subspan(t * vocab, vocab), other_row = others.subspan(t * vocab, vocab);
      a.agreeing += most_likely(row) == most_likely(other_row);
      if (t + 1 == tokens.size()) continue;
      a.loss += loss_of(row, tokens[t + 1]), a.other_loss += loss_of(other_row, tokens[t + 1]), losses += 1;
    }
    a.tokens += static_cast<int64_t>(tokens.size()), ++a.sequences;
    if (done) done(a.sequences);
  }
  a.error = std::sqrt(difference / norm);
  a.loss /= losses, a.other_loss /= losses;
  return a;
}

}  // namespace invar::generate
