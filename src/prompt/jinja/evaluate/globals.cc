// The functions of a chat template, and what strftime_now shows.
#include <array>

#include "prompt/jinja/evaluate/interpreter.h"

namespace invar::prompt::jinja {
namespace {

constexpr int64_t kLongestRange = 100000;  // of jinja2's sandbox

Result<Value> make_range(Interpreter& in, const Arguments& given) {
  if (!given.named.empty()) return bad_input("range() takes no keyword arguments");
  const size_t n = given.positional.size();
  if (n < 1 || n > 3) return bad_input("range expected 1 to 3 arguments, got " + std::to_string(n));
  int64_t at[3] = {0, 0, 1};
  for (size_t i = 0; i < n; ++i) {
    INVAR_TRY(at[n == 1 ? 1 : i], integer_or(&given.positional[i], 0, "an argument of range()"));
  }
  if (at[2] == 0) return bad_input("range() arg 3 must not be zero");
  std::vector<Value> numbers;
  for (int64_t i = at[0]; at[2] > 0 ? i < at[1] : i > at[1];) {
    if (static_cast<int64_t>(numbers.size()) == kLongestRange)
      return bad_input("Range too big. The sandbox blocks ranges larger than 100000.");
    numbers.push_back(Value{i});
    if (__builtin_add_overflow(i, at[2], &i)) break;
  }
  INVAR_CHECK_OK(in.spend(numbers.size() / 4));
  return sequence(Sequence::range, std::move(numbers));
}

Result<Value> make_dict(Interpreter& in, const Arguments& given) {
  std::vector<std::pair<Value, Value>> members;
  if (given.positional.size() > 1) return bad_input("dict expected at most 1 argument");
  for (const Value& from : given.positional) {
    if (from.dict()) {
      members = from.dict()->members;
      continue;
    }
    INVAR_TRY(const std::vector<Value> pairs, in.iterate(from));
    for (const Value& pair : pairs) {
      INVAR_TRY(const std::vector<Value> two, in.iterate(pair));
      if (two.size() != 2 || !hashable(two[0])) return bad_input("dict() takes pairs of a key and a value");
      members.emplace_back(two[0], two[1]);
    }
  }
  for (const auto& [name, value] : given.named) members.emplace_back(text(name), value);
  return dict(std::move(members));
}

int day_of_year(const Date& d) {
  constexpr int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
  return before[d.month - 1] + d.day + (leap && d.month > 2);
}

// 0 is Sunday.
int weekday(const Date& d) {
  const int y = d.year - 1;
  return (y * 365 + y / 4 - y / 100 + y / 400 + day_of_year(d)) % 7;
}

std::string digits(int value, int width, char fill = '0') {
  std::string s = std::to_string(value);
  return std::string(s.size() < static_cast<size_t>(width) ? static_cast<size_t>(width) - s.size() : 0,
                     fill) +
         s;
}

}  // namespace

// Formats as the C locale does; %-d and its like leave out the zero in front.
Result<std::string> strftime(const std::string& format, const Date& d) {
  static constexpr std::array months{"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
  static constexpr std::array days{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
  const std::string month = months[static_cast<size_t>(d.month - 1)],
                    day = days[static_cast<size_t>(weekday(d))];
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool short_form = format[i + 1] == '-' && i + 2 < format.size();
    i += short_form ? 2 : 1;
    const int width = short_form ? 1 : 2;
    switch (format[i]) {
      case 'Y': out += std::to_string(d.year); break;
      case 'y': out += digits(d.year % 100, width); break;
      case 'm': out += digits(d.month, width); break;
      case 'd': out += digits(d.day, width); break;
      case 'e': out += digits(d.day, width, ' '); break;
      case 'H': out += digits(d.hour, width); break;
      case 'I': out += digits((d.hour + 11) % 12 + 1, width); break;
      case 'M': out += digits(d.minute, width); break;
      case 'S': out += digits(d.second, width); break;
      case 'p': out += d.hour < 12 ? "AM" : "PM"; break;
      case 'j': out += digits(day_of_year(d), short_form ? 1 : 3); break;
      case 'w': out += std::to_string(weekday(d)); break;
      case 'u': out += std::to_string((weekday(d) + 6) % 7 + 1); break;
      case 'B': out += month; break;
      case 'b':
      case 'h': out += month.substr(0, 3); break;
      case 'A': out += day; break;
      case 'a': out += day.substr(0, 3); break;
      case 'F': out += std::to_string(d.year) + "-" + digits(d.month, 2) + "-" + digits(d.day, 2); break;
      case 'T': out += digits(d.hour, 2) + ":" + digits(d.minute, 2) + ":" + digits(d.second, 2); break;
      case '%': out += '%'; break;
      default:
        return not_covered("strftime_now: the format %" + std::string(1, format[i]) + " is not covered");
    }
  }
  return out;
}

bool is_global(std::string_view name) {
  for (const std::string_view one : {"range", "dict", "namespace", "raise_exception", "strftime_now"})
    if (name == one) return true;
  return false;
}

Result<Value> call_global(Interpreter& in, const std::string& name, Arguments given) {
  if (name == "range") return make_range(in, given);
  if (name == "dict") return make_dict(in, given);
  if (name == "namespace") return in.new_namespace(std::move(given));
  const bool raises = name == "raise_exception";
  INVAR_TRY(const BoundArguments bound, bind_arguments(name + "()", raises ? "message" : "format", given));
  if (!bound[0]) return bad_input(name + "() needs an argument");
  if (raises) {
    INVAR_TRY(const std::string message, str(*bound[0]));
    return bad_input("the template refuses: " + message);
  }
  INVAR_TRY(const std::string format, string_of(*bound[0], "the format of strftime_now()"));
  INVAR_TRY(std::string shown, strftime(format, in.date()));
  return text(std::move(shown));
}

}  // namespace invar::prompt::jinja
