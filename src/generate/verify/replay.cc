#include "generate/verify/replay.h"

#include <algorithm>

namespace invar::generate {
namespace {

using Deliver = std::function<void(const receipt::Rows&)>;

// The logits between two wanted positions that lie no further apart are computed with them: this is
// cheaper than two passes.
constexpr int64_t kGap = 16, kDeviceGap = 256;

void report(Phase& phase, size_t done, std::span<const int32_t> tokens) {
  phase.progress(static_cast<int64_t>(done), static_cast<int64_t>(tokens.size()), "tokens");
}

// Appends tokens whose logits nobody wants, but for the last ones, which are left for a step.
Status append(run::Session& session, std::span<const int32_t> tokens, int64_t& begin, int64_t end,
              Phase& phase) {
  for (const int64_t size = session.chunk(); end - begin > size; begin += size) {
    const run::NewTokens more{0, tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(size))};
    INVAR_CHECK_OK(session.append_many({&more, 1}));
    report(phase, static_cast<size_t>(begin + size), tokens);
  }
  return {};
}

}  // namespace

receipt::Forward forward_pass(run::Session& session, Phase& phase) {
  return [&session, &phase](std::span<const int32_t> tokens, std::span<const int64_t> positions,
                            const Deliver& deliver) -> Status {
    const int64_t vocab = session.vocab(), gap = session.gpu() ? kDeviceGap : kGap;
    session.reset();
    int64_t begin = 0;
    while (!positions.empty()) {
      size_t run = 1;
      while (run < positions.size() && positions[run] - positions[run - 1] <= gap) ++run;
      const int64_t first = positions[0], end = positions[run - 1] + 1;
      INVAR_CHECK_OK(append(session, tokens, begin, first, phase));
      const auto part = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      INVAR_CHECK_OK(session.step_rows(part, end - first, [&](int64_t row, std::span<const float> logits) {
        const int64_t count = static_cast<int64_t>(logits.size()) / vocab;
        deliver({begin + row, count, logits});
        report(phase, static_cast<size_t>(begin + row + count), tokens);
      }));
      begin = end;
      positions = positions.subspan(run);
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
      deliver({static_cast<int64_t>(next) - 1, 1, logits});
      report(phase, next, tokens);
    }
    return {};
  };
}

}  // namespace invar::generate
