#include "generate/replay/replay.h"

#include <algorithm>

namespace invar::generate {
namespace {

using Deliver = std::function<void(int64_t position, std::span<const float> row)>;

void report(Phase& phase, size_t done, std::span<const int32_t> tokens) {
  phase.progress(static_cast<int64_t>(done), static_cast<int64_t>(tokens.size()), "tokens");
}

}  // namespace

receipt::Forward forward_pass(run::Session& session, int64_t chunk, Phase& phase) {
  const size_t piece = chunk > 0 ? static_cast<size_t>(chunk) : 256;
  return [&session, &phase, piece](std::span<const int32_t> tokens, std::span<const int64_t> positions,
                                   const Deliver& deliver) -> Status {
    const size_t vocab = static_cast<size_t>(session.vocab());
    session.reset();
    size_t begin = 0;
    while (!positions.empty()) {
      // Up to the next wanted position, or as many wanted ones as follow one another.
      const auto next = static_cast<size_t>(positions.front());
      const bool all = next == begin;
      size_t wanted = 0;
      while (wanted < positions.size() && wanted < piece &&
             positions[wanted] == static_cast<int64_t>(next + wanted))
        ++wanted;
      const auto part = tokens.subspan(begin, all ? wanted : std::min(piece, next + 1 - begin));
      INVAR_TRY(const std::span<const float> logits, session.step(part, all));
      begin += part.size();
      const size_t rows = all ? wanted : begin == next + 1 ? 1 : 0;
      for (size_t i = 0; i < rows; ++i)
        deliver(static_cast<int64_t>(next + i), logits.subspan(i * vocab, vocab));
      positions = positions.subspan(rows);
      report(phase, begin, tokens);
    }
    return {};
  };
}

receipt::Forward repeat_steps(run::Session& session, size_t prompt_tokens, Phase& phase) {
  return [&session, &phase, prompt_tokens](std::span<const int32_t> tokens, std::span<const int64_t>,
                                           const Deliver& deliver) -> Status {
    session.reset();
    size_t next = prompt_tokens;
    for (std::span<const int32_t> step = tokens.first(next); !step.empty();
         step = tokens.subspan(next, next < tokens.size()), next += step.size()) {
      INVAR_TRY(std::span<const float> logits, session.step(step));
      deliver(static_cast<int64_t>(next) - 1, logits);
      report(phase, next, tokens);
    }
    return {};
  };
}

}  // namespace invar::generate
