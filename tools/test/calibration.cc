// What tools/test/build_time.py compiles to learn the speed of the machine: the standard library
// alone, so that it changes with the compiler and never with Invar.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace {

template <int N>
struct Table {
  using Value = std::variant<int, double, std::string, std::vector<std::string>>;
  std::map<std::string, Value> rows;

  size_t fill(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      const size_t at = line.find('=');
      if (at != line.npos) rows[line.substr(0, at)] = std::stoi(line.substr(at + 1));
    }
    std::vector<std::pair<std::string, Value>> sorted(rows.begin(), rows.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first.size() + N < b.first.size(); });
    return std::visit([](const auto& v) { return sizeof(v) + N; }, sorted.front().second);
  }
};

}  // namespace

size_t calibrate(const std::vector<std::string>& lines) {
  const std::function<size_t()> all[] = {[&] { return Table<1>().fill(lines); },
                                         [&] { return Table<2>().fill(lines); }};
  size_t sum = 0;
  for (const auto& one : all) sum += one();
  return sum;
}
