#include "run/partitions/prompt_passes.h"

#include <algorithm>

namespace invar::run {

// At most a quarter of a pass is padding.
static bool is_similar(int64_t size, int64_t width) {
  return size * 4 >= width * 3;
}

void PromptPasses::add_pass(std::span<const Prompt> prompts, int64_t width) {
  std::vector<int32_t>& padded = padded_.emplace_back();
  std::vector<ops::Sequence>& sequences = sequences_.emplace_back();
  int64_t tokens = 0;
  for (const Prompt& p : prompts) {
    const int64_t count = std::min(p.size(), width);
    padded.insert(padded.end(), p.tokens.begin(), p.tokens.begin() + count);
    padded.resize(padded.size() + static_cast<size_t>(width - count));
    sequences.push_back({p.sequence, p.past});
    tokens += count;
  }
  passes_.push_back({padded, sequences, /*tail=*/false});
  tokens_.push_back(tokens), all_tokens_ += tokens;
}

PromptPasses::PromptPasses(std::span<const NewTokens> prompts, std::span<const int64_t> position,
                           int64_t rows, bool pads) {
  std::vector<Prompt> rest;
  int64_t last = 0;  // the end of the longest sequence: padding stays before it
  for (const NewTokens& n : prompts) {
    Prompt p{n.sequence, position[static_cast<size_t>(n.sequence)], n.tokens};
    last = std::max(last, p.past + p.size());
    for (; p.size() > rows; p.past += rows, p.tokens = p.tokens.subspan(static_cast<size_t>(rows)))
      add_pass({&p, 1}, rows);
    rest.push_back(p);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Prompt& a, const Prompt& b) { return a.size() > b.size(); });
  for (size_t begin = 0, end; begin < rest.size(); begin = end) {
    const int64_t width = rest[begin].size();
    const auto joins = [&](const Prompt& p) {
      return (pads ? is_similar(p.size(), width) : p.size() == width) && p.past + width <= last &&
             static_cast<int64_t>(end - begin + 1) * width <= rows;
    };
    for (end = begin + 1; end < rest.size() && joins(rest[end]);) ++end;
    add_pass(std::span(rest).subspan(begin, end - begin), width);
  }
}

}  // namespace invar::run
