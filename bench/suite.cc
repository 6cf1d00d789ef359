// Parses bench.txt suites into items.
#include "bench/suite.h"

#include <algorithm>

#include "base/opset.h"
#include "kernels/op_contract.h"

namespace invar::bench {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 36;

bool sane(const conformance::Tensor& t) {
  int64_t n = 1;
  if (t.shape.size() > static_cast<size_t>(ops::kMaxRank)) return false;
  for (int64_t d : t.shape)
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > kMostElements) return false;
  return true;
}

// Takes a number that is ours and not the operation's out of the attributes.
bool take(Attributes& attrs, const char* name, int64_t& value) {
  auto it = attrs.find(name);
  if (it == attrs.end()) return true;
  const int64_t* i = std::get_if<int64_t>(&it->second);
  if (!i || *i < 0) return false;
  value = *i;
  attrs.erase(it);
  return true;
}

}  // namespace

std::string Item::shape() const {
  std::string s;
  for (const conformance::Tensor& t : call.in) {
    if (!s.empty()) s += " ";
    if (t.dtype != DType::f32) s += std::string(name_of(t.dtype)) + ":";
    for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? "x" : "") + std::to_string(t.shape[i]);
    if (t.shape.empty()) s += "scalar";
  }
  if (past) s += " past " + std::to_string(past);
  for (auto& [name, value] : call.attrs)
    if (const int64_t* i = std::get_if<int64_t>(&value)) s += " " + name + "=" + std::to_string(*i);
  return s;
}

Result<std::vector<Item>> items_of(const std::string& op, std::string_view text, const std::string& file) {
  std::vector<Item> items;
  std::string suite = "none", device = "cpu";
  constexpr std::string_view kOnDevice = " cuda";
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.starts_with('[') && line.ends_with(']')) {
      suite = line.substr(1, line.size() - 2), device = "cpu";
      if (suite.ends_with(kOnDevice)) suite.resize(suite.size() - kOnDevice.size()), device = "cuda";
      continue;
    }
    const std::string where = file + ":" + std::to_string(number);
    auto cases = conformance::parse(line, where, op);
    if (!cases) return bad_input(where + ": not a case; see docs/reference/bench.md: " + std::string(line));
    for (conformance::Case& c : *cases) {
      Item item{suite, op, device, std::move(c)};
      bool fine = take(item.call.attrs, "flops", item.flops) && take(item.call.attrs, "past", item.past) &&
                  take(item.call.attrs, "bytes", item.bytes);
      for (const auto* side : {&item.call.in, &item.call.out})
        for (const conformance::Tensor& t : *side)
          fine &= sane(t) && (side == &item.call.out || !t.fill.empty() || !t.bits.empty());
      if (!fine)
        return bad_input(where + ": a shape too large, or an operand without values: " + item.call.text);
      items.push_back(std::move(item));
    }
  }
  return items;
}

Result<std::vector<Item>> choose(const std::vector<std::string>& suites, const std::string& op,
                                 const std::string& device) {
  std::vector<Item> chosen;
  std::vector<std::string> known;
  bool op_known = op.empty();
  for (const SuiteText& t : embedded_texts()) {
    op_known |= t.op == op;
    INVAR_TRY(std::vector<Item> items,
              items_of(std::string(t.op), t.text, std::string(op_info(t.op)->room) + "/bench.txt"));
    const bool own =
        std::any_of(items.begin(), items.end(), [&](const Item& i) { return i.device == device; });
    for (Item& i : items) {
      if (i.device != (own ? device : "cpu")) continue;
      if (std::find(known.begin(), known.end(), i.suite) == known.end()) known.push_back(i.suite);
      const bool wanted = std::find(suites.begin(), suites.end(), i.suite) != suites.end() ||
                          std::find(suites.begin(), suites.end(), "all") != suites.end();
      if (wanted && (op.empty() || i.op == op)) chosen.push_back(std::move(i));
    }
  }
  if (!op_known) return bad_input("no benchmark of an operation '" + op + "': give its call with --shape");
  std::string names = "all";
  for (const std::string& k : known) names += ", " + k;
  for (const std::string& s : suites)
    if (s != "all" && s != "model" && std::find(known.begin(), known.end(), s) == known.end())
      return bad_input("no suite '" + s + "'; there are " + names + ", model");
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Item& a, const Item& b) {
    auto place = [&](const Item& i) { return std::find(known.begin(), known.end(), i.suite); };
    return place(a) < place(b);
  });
  return chosen;
}

}  // namespace invar::bench
