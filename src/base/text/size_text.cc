#include "base/text/size_text.h"

#include "base/text/decimal.h"

namespace invar {
namespace {

struct Unit {
  const char* name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"TB", 1'000'000'000'000}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}, {"B", 1}};

}  // namespace

// Three digits, by whole numbers: no float arithmetic in base.
std::string size_text(uint64_t bytes) {
  const Unit* unit = kUnits;
  while (unit->bytes > 1 && bytes < unit->bytes) ++unit;
  const uint64_t whole = bytes / unit->bytes, hundredths = bytes % unit->bytes * 100 / unit->bytes;
  std::string text = std::to_string(whole);
  if (unit->bytes > 1 && whole < 100) text += "." + std::to_string(hundredths / 10);
  if (unit->bytes > 1 && whole < 10) text += std::to_string(hundredths % 10);
  return text + " " + unit->name;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t factor = 1;
  for (const Unit& unit : kUnits)
    if (text.ends_with(unit.name)) {
      factor = unit.bytes;
      text.remove_suffix(std::string_view(unit.name).size());
      break;
    }
  const auto number = parse_whole(text, 0, UINT64_MAX / factor);
  return number ? std::optional(*number * factor) : std::nullopt;
}

}  // namespace invar
