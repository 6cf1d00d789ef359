// Fuzzes forms that send files. What is read is written again, and read as the same parts. An
// input: the value of Content-Type and the body, joined by U+001E.
#include "http/form.h"
#include "fuzz/parsers/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  const size_t at = given.find('\x1e');
  if (at == given.npos) return 0;
  const auto read = http::read_form(given.substr(0, at), given.substr(at + 1));
  if (!read) return expect(read.error()), 0;
  const std::string boundary(70, 'b');
  if (given.find(boundary) != given.npos) return 0;
  std::string body;
  for (const http::FormPart& part : *read) {
    if (part.content.data() < given.data() || part.content.data() + part.content.size() > given.data() + size)
      defect("a part that is not of the body");
    std::string name;
    for (const char c : part.name) name += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n";
    body.append(part.content).append("\r\n");
  }
  body += "--" + boundary + "--\r\n";
  const auto again = http::read_form("multipart/form-data; boundary=" + boundary, body);
  if (!again || again->size() != read->size()) defect("a form that is not read again");
  for (size_t i = 0; i < read->size(); ++i)
    if ((*again)[i].name != (*read)[i].name || (*again)[i].content != (*read)[i].content)
      defect("a part is another one when it is read again");
  return 0;
}
