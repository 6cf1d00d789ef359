#include "device/gpu_architectures.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/file/file.h"
#include "base/file/listing.h"

namespace invar {
namespace {

struct Architecture {
  int compute;
  bool exact;         // of an architecture-specific set of instructions, such as 90a
  bool machine, ptx;  // which forms there are
};

// None: a word such as "native".
std::optional<Architecture> code_of(std::string_view word) {
  Architecture c{0, false, true, true};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), c.compute);
  if (error != std::errc()) return {};
  std::string_view rest(end, static_cast<size_t>(word.data() + word.size() - end));
  if (rest.starts_with('a')) c.exact = true, rest.remove_prefix(1);
  if (rest == "-real") c.ptx = false;
  if (rest == "-virtual") c.machine = false;
  return c;
}

// None: a word in the list is no capability.
std::optional<std::vector<Architecture>> codes_of(std::string_view list) {
  std::vector<Architecture> codes;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const auto code = code_of(list.substr(0, end));
    if (!code) return {};
    codes.push_back(*code);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return codes;
}

std::string dotted(int compute) {
  return std::to_string(compute / 10) + "." + std::to_string(compute % 10);
}

}  // namespace

// Machine code runs on its generation from its capability on, and the driver compiles PTX for every
// later one.
bool has_code(std::string_view architectures, int compute) {
  const auto codes = codes_of(architectures);
  return !codes || std::ranges::any_of(*codes, [&](const Architecture& c) {
    if (c.exact) return c.compute == compute;
    return c.compute <= compute && (c.ptx || c.compute / 10 == compute / 10);
  });
}

std::string capabilities(std::string_view architectures) {
  const auto codes = codes_of(architectures);
  std::string machine, ptx;
  for (const Architecture& c : codes.value_or(std::vector<Architecture>{})) {
    if (c.machine) machine += (machine.empty() ? "" : ", ") + dotted(c.compute);
    if (c.ptx) ptx += (ptx.empty() ? "PTX of " : ", ") + dotted(c.compute);
  }
  return machine.empty() || ptx.empty() ? machine + ptx : machine + " and " + ptx;
}

std::string gpu_of_driver(const std::string& folder) {
  auto names = names_in(folder);
  if (!names) return "";
  std::ranges::sort(*names);
  for (const std::string& name : *names) {
    const auto text = read_file(folder + "/" + name + "/information");
    const size_t at = text ? text->find("Model:") : std::string::npos;
    if (at == std::string::npos) continue;
    const size_t begin = text->find_first_not_of(" \t", at + 6), end = text->find('\n', at);
    if (begin < std::min(end, text->size())) return text->substr(begin, end - begin);
  }
  return "";
}

}  // namespace invar
