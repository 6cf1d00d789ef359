#include "options/values.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/text/decimal.h"
#include "base/text/size_text.h"
#include "base/text/utf8.h"
#include "help/suggest.h"
#include "http/origins.h"
#include "kernels/registry.h"

namespace invar::cli {
namespace {

bool is_device(const std::string& name) {
  return name == "cpu" || name == "cuda" ||
         (name.starts_with("cuda:") && parse_whole(name.substr(5), 0, INT32_MAX));
}

std::optional<Wrong> wrong(std::string message) {
  if (message.empty()) return std::nullopt;
  return Wrong{std::move(message)};
}

// "" where it is stored, else why not.
template <class T>
std::string store_one(const OptionRow& row, const std::string& text, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value = row.kind != ValueKind::off, "";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value = text, "";
  } else if constexpr (std::is_same_v<T, Profile> || std::is_same_v<T, OperationSet>) {
    std::optional<T> known;
    if constexpr (std::is_same_v<T, Profile>)
      known = profile_from(text);
    else
      known = operation_set_from(text);
    if (!known) return text + " is not known";  // the choices of the row say the names
    return value = *known, "";
  } else if constexpr (std::is_same_v<T, sample::LogitBias>) {
    const size_t colon = std::min(text.find(':'), text.size());
    const auto token = parse_whole(text.substr(0, colon), 0, INT32_MAX);
    if (!token || colon == text.size()) return text + " is no token id, a colon and a number, such as 5:-1.5";
    value.token = static_cast<int32_t>(*token);
    return parse_decimal(text.substr(colon + 1), value.bias);
  } else if constexpr (std::is_integral_v<T>) {
    const bool is_size = row.kind == ValueKind::size;
    const std::optional<uint64_t> number =
        is_size ? parse_size(text) : parse_whole(text, row.least, row.most);
    if (is_size && number.value_or(0) == 0)
      return text + " is not a size, a whole number of B, kB, MB, GB or TB, such as 20GB";
    if (!number)
      return text + " is not a whole number from " + std::to_string(row.least) + " to " +
             std::to_string(row.most);
    return value = static_cast<T>(*number), "";
  } else if (row.kind == ValueKind::power) {
    if (text.starts_with("2^") && parse_decimal(text.substr(2), value).empty()) return "";
    return text + " is no power of two such as 2^-8";
  } else {
    if (std::string why = parse_decimal(text, value); !why.empty()) return why;
    if (row.most == 0 || (value >= static_cast<T>(row.least) && value <= static_cast<T>(row.most))) return "";
    return text + " is not from " + std::to_string(row.least) + " to " + std::to_string(row.most);
  }
}
template <class T>
std::string store_one(const OptionRow& row, const std::string& text, std::vector<T>& list) {
  T value{};
  std::string why = store_one(row, text, value);
  list.push_back(std::move(value));
  return why;
}
template <class T>
std::string store_one(const OptionRow& row, const std::string& text, std::optional<T>& value) {
  return store_one(row, text, value ? *value : value.emplace());
}

}  // namespace

std::optional<Wrong> store(const OptionRow& row, const std::string& text, const Target& target) {
  if (row.check)
    if (std::optional<Wrong> why = row.check(text)) return why;
  const bool says_range = row.kind == ValueKind::whole || row.most > 0;  // of an empty text, too
  if (text.empty() && !row.may_be_empty && !row.position && !row.is_flag() && !says_range)
    return Wrong{"empty: give a value, or leave the option out"};
  return wrong(std::visit([&](auto* to) { return store_one(row, text, *to); }, target));
}

std::optional<Wrong> check_device(const std::string& name) {
  if (is_device(name)) return std::nullopt;
  return Wrong{name + " is not cpu, cuda or cuda:N", did_you_mean(nearest(name, {"cpu", "cuda"}))};
}

std::optional<Wrong> check_devices(const std::string& list) {
  if (("," + list + ",").find(",,") != std::string::npos)
    return Wrong{list + " has an empty name; give names, comma separated, such as cuda:0,cuda:1", ""};
  for (size_t at = 0, end; at < list.size(); at = end + 1) {
    end = std::min(list.find(',', at), list.size());
    if (std::optional<Wrong> why = check_device(list.substr(at, end - at))) return why;
  }
  return std::nullopt;
}

std::optional<Wrong> check_isa(const std::string& name) {
  std::vector<std::string> here;
  for (const std::string_view isa : ops::isas_and_extensions()) here.emplace_back(isa);
  if (name.empty() || std::ranges::count(here, name) > 0) return std::nullopt;
  std::string list;
  for (const std::string& isa : here) list += (list.empty() ? "" : ", ") + isa;
  return Wrong{name + " is no instruction set that this CPU and build have: " + list,
               did_you_mean(nearest(name, here))};
}

std::optional<Wrong> check_name(const std::string& name) {
  if (valid_prefix(name) < name.size()) return Wrong{"a name is UTF-8"};
  if (name.empty() || name.size() > 256) return Wrong{"a name has 1 to 256 bytes"};
  return std::nullopt;
}

std::optional<Wrong> check_salt(const std::string& salt) {
  if (!salt.empty()) return std::nullopt;
  return Wrong{"empty: give a text that the prover could not know, or leave --salt out"};
}

std::optional<std::pair<uint64_t, uint64_t>> parse_shard(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  uint64_t numbers[2] = {};
  const std::string_view parts[] = {text.substr(0, slash), text.substr(std::min(slash + 1, text.size()))};
  for (int i = 0; i < 2; ++i) {
    const char* const end = parts[i].data() + parts[i].size();
    const auto read = std::from_chars(parts[i].data(), end, numbers[i]);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  }
  if (numbers[0] >= numbers[1]) return std::nullopt;
  return std::pair(numbers[0], numbers[1]);
}

std::optional<Wrong> check_shard(const std::string& text) {
  if (parse_shard(text)) return std::nullopt;
  return Wrong{text + " is no share: give I/N with I from 0 and below N, such as 0/8"};
}

std::optional<Wrong> check_origin(const std::string& text) {
  if (const auto origins = http::origins_of({text}); !origins) return Wrong{origins.error().message};
  return std::nullopt;
}

}  // namespace invar::cli
