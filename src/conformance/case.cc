// Parses the lines of cases.txt, vectors.txt and golden.txt.
#include "conformance/case.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/endian.h"
#include "base/hash/sha256.h"
#include "base/opset.h"

namespace invar::conformance {
namespace {

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= s.size();) {
    size_t end = std::min(s.find(separator, at), s.size());
    if (end > at) parts.push_back(s.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <class T>
bool number(std::string_view s, T& out, int base = 10) {
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out, base);
  return error == std::errc() && end == s.data() + s.size();
}

// A sum of products of integers: 8*32+1.
bool expression(std::string_view s, int64_t& out) {
  out = 0;
  for (std::string_view term : split(s, '+')) {
    int64_t product = 1, factor;
    for (std::string_view f : split(term, '*')) {
      if (!number(f, factor)) return false;
      product *= factor;
    }
    out += product;
  }
  return !s.empty();
}

// [@]DTYPE[DIMS]:FILL or =BITS,BITS
bool tensor(std::string_view s, Tensor& t) {
  t.constant = s.starts_with('@');
  s.remove_prefix(t.constant);
  size_t open = s.find('['), close = s.find(']');
  if (open == s.npos || close == s.npos) return false;
  auto dtype = dtype_from(s.substr(0, open));
  if (!dtype) return false;
  t.dtype = *dtype;
  for (std::string_view d : split(s.substr(open + 1, close - open - 1), ',')) {
    int64_t size;
    if (!expression(d, size)) return false;
    t.shape.push_back(size);
  }
  s.remove_prefix(close + 1);
  if (s.starts_with(':')) t.fill = s.substr(1);
  if (s.starts_with('=')) {
    for (std::string_view b : split(s.substr(1), ',')) {
      uint64_t bits;
      if (!number(b, bits, 16)) return false;
      t.bits.push_back(bits);
    }
    return static_cast<int64_t>(t.bits.size()) == t.elements();
  }
  return true;
}

bool setting(std::string_view s, Case& c) {
  size_t equal = s.find('=');
  if (equal == s.npos) return false;
  std::string name(s.substr(0, equal));
  std::string_view value = s.substr(equal + 1);
  if (name == "seed") return number(value, c.seed);
  if (name == "spare") return number(value, c.spare);
  if (name == "chunks") {
    for (std::string_view v : split(value, ',')) {
      int64_t n;
      if (!number(v, n)) return false;
      c.chunks.push_back(n);
    }
    return true;
  }
  if (value.starts_with("f32:")) {
    uint32_t bits;
    if (!number(value.substr(4), bits, 16)) return false;
    c.attrs[name] = F32Bits{bits};
    return true;
  }
  if (value.find(',') != value.npos) {
    std::vector<int64_t> list;
    for (std::string_view v : split(value, ','))
      if (!number(v, list.emplace_back())) return false;
    c.attrs[name] = list;
    return true;
  }
  int64_t i;
  if (!expression(value, i)) return false;
  c.attrs[name] = i;
  return true;
}

// IN IN ... -> OUT ... [| SETTING ...] [=> DIGEST]
bool one_case(std::string_view line, Case& c) {
  c.text = line;
  std::vector<Tensor>* side = &c.in;
  bool settings = false, digest = false;
  for (std::string_view word : split(line, ' ')) {
    if (word == "->") {
      side = &c.out;
    } else if (word == "|") {
      settings = true;
    } else if (word == "=>") {
      digest = true;
    } else if (digest) {
      if (!digest_from_hex(word)) return false;
      c.digest = word;
    } else if (settings) {
      if (!setting(word, c)) return false;
    } else {
      if (!tensor(word, side->emplace_back())) return false;
    }
  }
  return !c.out.empty() && (!digest || !c.digest.empty());
}

// The line with each whole word that names a variable replaced by its value.
std::string substitute(std::string_view line, const std::map<std::string, std::string>& values) {
  std::string out;
  auto letter = [](char ch) { return std::isalnum(static_cast<unsigned char>(ch)) || ch == '_'; };
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && letter(line[end])) ++end;
    if (end == i) {
      out += line[i++];
      continue;
    }
    std::string word(line.substr(i, end - i));
    auto it = values.find(word);
    out += it == values.end() ? word : it->second;
    i = end;
  }
  return out;
}

// `3*@f32[2]:one` stands for three such operands.
std::string repeated(const std::string& line) {
  const size_t end = std::min(line.find(" -> "), line.size());
  std::string out;
  for (std::string_view word : split(std::string_view(line).substr(0, end), ' ')) {
    const size_t star = word.find('*');
    int64_t times = 1;
    if (star < word.find('[') && number(word.substr(0, star), times)) word.remove_prefix(star + 1);
    for (int64_t i = 0; i < times; ++i) (out += word) += ' ';
  }
  if (!out.empty()) out.pop_back();
  return out + line.substr(end);
}

}  // namespace

std::string_view prefix_of(std::string_view line) {
  size_t end = 0;
  while (end < line.size() &&
         (std::islower(static_cast<unsigned char>(line[end])) ||
          std::isdigit(static_cast<unsigned char>(line[end])) || line[end] == '_' || line[end] == ','))
    ++end;
  return end > 0 && line.substr(end).starts_with(": ") ? line.substr(0, end + 2) : std::string_view{};
}

bool is_for(std::string_view line, std::string_view op) {
  std::string_view prefix = prefix_of(line);
  if (prefix.empty()) return true;
  const OpInfo* info = op_info(op);
  for (std::string_view name : split(prefix.substr(0, prefix.size() - 2), ','))
    if (name == op || (info && name == info->kind)) return true;
  return false;
}

Result<std::vector<Case>> parse(std::string_view text, const std::string& file, std::string_view op) {
  std::vector<Case> cases;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    auto where = [&] { return file + ":" + std::to_string(number) + ": "; };
    line = line.substr(0, line.find('#'));
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    if (line.empty() || !is_for(line, op)) continue;
    line = line.substr(prefix_of(line).size());
    std::vector<std::pair<std::string, std::vector<std::string_view>>> variables;
    if (line.starts_with("for ")) {
      size_t colon = line.find(" : ");
      if (colon == line.npos) return bad_input(where() + "a 'for' line needs ' : ' before its case");
      for (std::string_view v : split(line.substr(4, colon - 4), ' ')) {
        size_t equal = v.find('=');
        if (equal == v.npos) return bad_input(where() + "not a variable: " + std::string(v));
        variables.emplace_back(v.substr(0, equal), split(v.substr(equal + 1), ','));
        if (variables.back().second.empty()) return bad_input(where() + "a variable without values");
      }
      line = line.substr(colon + 3);
    }
    std::vector<size_t> index(variables.size(), 0);  // an odometer over all combinations
    for (bool more = true; more;) {
      std::map<std::string, std::string> values;
      for (size_t v = 0; v < variables.size(); ++v)
        values[variables[v].first] = variables[v].second[index[v]];
      std::string text_of_case = repeated(substitute(line, values));
      Case c;
      if (!one_case(text_of_case, c)) return bad_input(where() + "not a case: " + text_of_case);
      cases.push_back(std::move(c));
      size_t v = 0;
      while (v < index.size() && ++index[v] == variables[v].second.size()) index[v++] = 0;
      more = v < index.size();
    }
  }
  return cases;
}

std::string digest_of(const Case& c, const std::vector<std::vector<std::byte>>& outputs) {
  Sha256 sha;
  for (size_t o = 0; o < outputs.size(); ++o) {
    std::vector<std::byte> bytes(outputs[o].size());
    copy_little_endian(bytes.data(), outputs[o].data(), bytes.size(), size_of(c.out[o].dtype));
    sha.update(bytes.data(), bytes.size());
  }
  return to_hex(sha.finish());
}

}  // namespace invar::conformance
