// The step where two answers choose different tokens, and by how much, see compare.h.
#include <algorithm>
#include <charconv>

#include "base/endian.h"
#include "dispute/compare.h"

namespace invar::dispute {
namespace {

std::string decimal(float x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

// 1: no other logit is larger.
std::string rank_of(const std::vector<float>& logits, float logit) {
  const auto larger = std::ranges::count_if(logits, [&](float x) { return x > logit; });
  return larger == 0 ? "the largest" : "number " + std::to_string(larger + 1);
}

// The largest logit but that of `token`.
int32_t best_but(const std::vector<float>& logits, int32_t token) {
  int32_t best = token == 0 ? 1 : 0;
  for (int32_t t = 0; t < static_cast<int32_t>(logits.size()); ++t)
    if (t != token && logits[static_cast<size_t>(t)] > logits[static_cast<size_t>(best)]) best = t;
  return best;
}

}  // namespace

std::vector<float> floats_of(std::string_view little_endian) {
  std::vector<float> row(little_endian.size() / sizeof(float));
  copy_little_endian(reinterpret_cast<char*>(row.data()), little_endian.data(), row.size() * sizeof(float),
                     sizeof(float));
  return row;
}

std::optional<Parting> parting_of(const receipt::Receipt& a, const receipt::Receipt& b) {
  if (a.continued().empty() || a.continued() != b.continued() || a.prompt_tokens != b.prompt_tokens ||
      a.audio != b.audio || a.audio_start != b.audio_start)
    return std::nullopt;
  const auto at = std::mismatch(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  if (at.first == a.tokens.end() || at.second == b.tokens.end()) return std::nullopt;
  return Parting{at.first - a.tokens.begin(), *at.first, *at.second, {}};
}

Result<std::vector<float>> logits_of_step(const Subject& s, int64_t step) {
  const size_t length = s.receipt.continued().size() + static_cast<size_t>(step);
  if (step < 0 || length > s.tokens.size())
    return bad_input("step " + std::to_string(step) + " is not one of the answer");
  INVAR_TRY(run::Session session, run::Session::open(s.plan, s.folder, s.options));
  if (session.has_encoder()) {
    INVAR_CHECK_OK(session.encode(s.source()));
  }
  const auto piece = static_cast<size_t>(session.chunk());
  std::vector<float> row;
  for (std::span<const int32_t> rest = std::span(s.tokens).first(length); !rest.empty();
       rest = rest.subspan(std::min(piece, rest.size()))) {
    INVAR_TRY(const auto logits, session.step(rest.first(std::min(piece, rest.size()))));
    row.assign(logits.begin(), logits.end());
  }
  INVAR_CHECK_OK(session.weights_unchanged());
  return row;
}

void explain(const Parting& p, bool drawn, const std::function<std::string(int32_t)>& text_of,
             Difference& d) {
  const auto shown = [&](int32_t token) {
    const std::string text = text_of ? text_of(token) : "";
    return std::to_string(token) + (text.empty() ? "" : " " + text);
  };
  const bool one = p.a == p.b;  // one token, of other logits
  d.where.emplace_back(one ? "token" : "tokens", "step " + std::to_string(p.step) + ": " + shown(p.a) +
                                                     (one ? "" : " and " + shown(p.b)));
  const auto vocab = static_cast<int32_t>(p.logits.size());
  if (vocab < 2 || p.a < 0 || p.b < 0 || p.a >= vocab || p.b >= vocab) return;
  const int32_t other = one ? best_but(p.logits, p.a) : p.b;
  const float x = p.logits[static_cast<size_t>(p.a)], y = p.logits[static_cast<size_t>(other)];
  d.where.emplace_back("margin", "here token " + shown(p.a) + " has the logit " + decimal(x) + " (" +
                                     rank_of(p.logits, x) + "), token " + shown(other) + " " + decimal(y) +
                                     " (" + rank_of(p.logits, y) + "): " + decimal(x > y ? x - y : y - x) +
                                     " apart" +
                                     (drawn ? "; tokens are drawn, so the larger need not win" : ""));
}

}  // namespace invar::dispute
