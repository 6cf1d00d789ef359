#include "help/suggest.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

namespace invar::cli {
namespace {

// Insertions, deletions, replacements, and swaps of neighbours.
int distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  std::iota(d[0].begin(), d[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts{""};
  for (const char c : name) {
    if (c == '-' || c == '_')
      parts.emplace_back();
    else
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return parts;
}

int most_for(size_t length) {  // mistakes in a word of this length
  return length < 3 ? 0 : length < 7 ? 1 : 2;
}

// How far a name is from what was typed, in tenths of a mistake; none: it was not meant.
std::optional<int> far(std::string_view word, const std::string& name) {
  std::optional<int> best;
  const auto take = [&](int cost) { best = std::min(best.value_or(cost), cost); };
  const int whole = distance(word, name);
  if (whole <= std::max(most_for(word.size()), static_cast<int>(word.size()) / 4)) take(10 * whole);
  // Each part that was typed is one of the name's, as max-tokens of max-new-tokens.
  std::vector<std::string> typed = parts_of(word), others = parts_of(name);
  int cost = 0;
  bool first = true;  // model is model-name rather than worker-model
  for (const std::string& part : typed) {
    const auto found = std::ranges::min_element(others, {}, [&](const std::string& other) {
      return other.starts_with(part) ? 0 : distance(part, other);
    });
    if (found == others.end()) return best;
    const bool begins = part.size() >= 3 && found->starts_with(part);
    const int mistakes = begins ? (*found == part ? 0 : 1) : distance(part, *found);
    if (!begins && mistakes > most_for(part.size())) return best;
    cost += 10 * mistakes + (first && found != others.begin() ? 3 : 0);
    first = false;
    others.erase(found);
  }
  take(cost + 3 * static_cast<int>(others.size()));
  return best;
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  // Names of other programs for these.
  static const std::map<std::string_view, std::vector<std::string>> kOtherNames = {
      {"max-length", {"max-new-tokens"}},
      {"n", {"max-new-tokens"}},
      {"checkpoint", {"model-name"}},
      {"gpu", {"device", "cuda"}},
      {"num-threads", {"threads"}},
      {"eos", {"stop"}},
      {"greedy", {"no-do-sample"}},
      {"out", {"output"}},
      {"generate", {"run"}},
      {"check", {"verify", "validate"}},
      {"tokenize", {"encode"}},
      {"detokenize", {"decode"}},
      {"benchmark", {"bench"}},
      {"pull", {"download"}},
      {"prompt", {"prompt-text", "prompt-file"}}};
  std::vector<std::string> found;
  if (const auto other = kOtherNames.find(word); other != kOtherNames.end())
    for (const std::string& name : other->second)
      if (std::ranges::count(names, name) > 0) found.push_back(name);
  if (!found.empty()) return found;
  std::vector<std::pair<int, std::string>> near;
  for (const std::string& name : names)
    if (const auto cost = far(word, name)) near.emplace_back(*cost, name);
  std::ranges::stable_sort(near, {}, &std::pair<int, std::string>::first);
  for (const auto& [cost, name] : near)
    if (cost <= near.front().first + 2 && found.size() < 3 && std::ranges::count(found, name) == 0)
      found.push_back(name);
  return found;
}

std::string did_you_mean(const std::vector<std::string>& names, std::string_view before) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(before) + names[i];
  return text.empty() ? "" : "did you mean " + text + "?";
}

}  // namespace invar::cli
