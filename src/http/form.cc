#include "http/form.h"

#include <algorithm>
#include <utility>

#include "base/text/utf8.h"

namespace invar::http {
namespace {

constexpr size_t kMostParts = 64, kMostHeader = 4096;  // bytes of the header of a part
constexpr std::string_view kLine = "\r\n";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {  // RFC 9110, section 5.6.2
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  });
}

struct Parameter {
  std::string name, value;
};

// `WORD; name=value; name="value"`: the word, and the parameters behind it. Absent: it is none.
std::optional<std::vector<Parameter>> parameters_of(std::string_view field, std::string_view word) {
  const size_t end = std::min(field.find(';'), field.size());
  if (!same_word(trimmed(field.substr(0, end)), word)) return std::nullopt;
  std::vector<Parameter> found;
  for (std::string_view rest = field.substr(end); !rest.empty();) {
    rest = trimmed(rest.substr(1));
    const size_t equals = rest.find('=');
    if (equals == rest.npos || !is_token(rest.substr(0, equals))) return std::nullopt;
    Parameter p{std::string(rest.substr(0, equals)), ""};
    std::ranges::transform(p.name, p.name.begin(), lower);
    rest.remove_prefix(equals + 1);
    if (rest.starts_with('"')) {
      size_t at = 1;
      for (; at < rest.size() && rest[at] != '"'; ++at) {
        if (rest[at] == '\\' && at + 1 < rest.size() && (rest[at + 1] == '"' || rest[at + 1] == '\\')) ++at;
        p.value += rest[at];
      }
      if (at >= rest.size()) return std::nullopt;
      rest = trimmed(rest.substr(at + 1));
    } else {
      const size_t stop = std::min(rest.find(';'), rest.size());
      p.value = trimmed(rest.substr(0, stop));
      if (!is_token(p.value)) return std::nullopt;
      rest.remove_prefix(stop);
    }
    if (!rest.empty() && rest[0] != ';') return std::nullopt;
    if (std::ranges::find(found, p.name, &Parameter::name) != found.end()) return std::nullopt;
    found.push_back(std::move(p));
  }
  return found;
}

std::optional<std::string> value_of(const std::vector<Parameter>& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  if (found == parameters.end()) return std::nullopt;
  return found->value;
}

bool is_boundary(std::string_view text) {  // RFC 2046, section 5.1.1
  return !text.empty() && text.size() <= 70 && text.back() != ' ' && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
  });
}

Error wrong(const std::string& why) {
  return bad_input("the form: " + why);
}

// Of the header of a part: its name, and that of its file.
Result<FormPart> read_header(std::string_view header, const std::string& which) {
  FormPart part;
  bool named = false;
  for (size_t at = 0; at < header.size();) {
    const size_t end = std::min(header.find(kLine, at), header.size());
    const std::string_view line = header.substr(at, end - at);
    at = end + kLine.size();
    const size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon)) ||
        std::ranges::any_of(line, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; }))
      return wrong(which + " has a line in its header that is no field");
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (same_word(name, "content-transfer-encoding") && !same_word(value, "binary") &&
        !same_word(value, "8bit") && !same_word(value, "7bit"))
      return wrong(which + " has a Content-Transfer-Encoding: only binary is taken");
    if (!same_word(name, "content-disposition")) continue;
    const auto parameters = parameters_of(value, "form-data");
    const auto own = parameters ? value_of(*parameters, "name") : std::nullopt;
    if (!own || own->empty() || valid_prefix(*own) < own->size() || std::exchange(named, true))
      return wrong(which + " needs one Content-Disposition: form-data; name=\"NAME\"");
    part.name = *own, part.file_name = value_of(*parameters, "filename");
  }
  if (!named) return wrong(which + " has no name");
  return part;
}

}  // namespace

Result<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body) {
  const auto type = parameters_of(content_type, "multipart/form-data");
  const auto boundary = type ? value_of(*type, "boundary") : std::nullopt;
  if (!boundary || !is_boundary(*boundary))
    return wrong("Content-Type: multipart/form-data; boundary=BOUNDARY is needed");
  const std::string first = "--" + *boundary, next = std::string(kLine) + first;
  if (!body.starts_with(first)) return wrong("the body does not begin with its boundary");
  std::vector<FormPart> parts;
  for (size_t at = first.size();;) {
    const std::string_view rest = body.substr(at);
    if (rest == "--" || rest == "--\r\n") return parts;
    const std::string which = "part " + std::to_string(parts.size() + 1);
    if (!rest.starts_with(kLine)) return wrong("behind a boundary is neither CRLF nor the end of the body");
    if (parts.size() == kMostParts)
      return wrong("more than " + std::to_string(kMostParts) + " parts: send fewer");
    at += kLine.size();
    const size_t end = body.substr(at, kMostHeader).find("\r\n\r\n");
    if (end == body.npos)
      return wrong(which + " has a header without an end, or one of more than " +
                   std::to_string(kMostHeader) + " bytes");
    INVAR_TRY(FormPart part, read_header(body.substr(at, end), which));
    at += end + 4;
    const size_t close = body.find(next, at);
    if (close == body.npos) return wrong(which + ", '" + part.name + "', has no end");
    part.content = body.substr(at, close - at);
    parts.push_back(std::move(part));
    at = close + next.size();
  }
}

}  // namespace invar::http
