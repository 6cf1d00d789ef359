// The text of a verdict for people, and the file of a receipt.
#include <cstdio>

#include "base/file/file.h"
#include "base/text/display.h"
#include "base/text/json.h"
#include "generate/verify/verify.h"

namespace invar::generate {
namespace {

// A receipt has a digest of 64 digits for each token, and a line for each tensor.
constexpr FileKind kReceiptFile{"a receipt", uint64_t{256} << 20, true};

// "  folder    /models/x"
std::string row(const std::string& what, const std::string& text) {
  return "  " + what + std::string(what.size() < 9 ? 9 - what.size() : 0, ' ') + " " + text + "\n";
}

}  // namespace

std::string report(const Verdict& v) {
  std::string text = v.verdict + "  " + printable(v.receipt) + "\n";
  for (const auto& [what, how] : v.about) text += row(what, printable(how));
  for (const Compared& c : v.compared)
    if (v.ok() || c.what == "folder") text += row(c.what, printable(c.how));
  if (v.ok()) return text + row("receipt", v.receipt_hash);
  for (const std::string& finding : receipt::texts_of(v.findings)) text += "  " + printable(finding) + "\n";
  const bool computed = v.findings.front().field.starts_with("output.logits[") ||
                        v.findings.front().field.starts_with("output.tokens[");
  if (computed)
    text +=
        row("next", "invar diff " + printable(v.receipt) + " with the same options names the likely cause");
  return text;
}

std::string caveats(const Verdict& v) {
  std::string text;
  for (const Compared& c : v.compared)
    if (v.ok() && c.caveat) text += row(c.what, printable(c.how));
  return text;
}

json::Value json_of(const Verdict& v) {
  using json::Value;
  Value j = {{"ok", v.ok()},
             {"verdict", v.verdict},
             {"about", Value::object},
             {"receipt", v.receipt},
             {"receipt_hash", v.receipt_hash},
             {"compared", Value::object},
             {"caveats", Value::array},
             {"findings", Value::array}};
  for (const Compared& c : v.compared) {
    j["compared"][c.what] = c.how;
    if (c.caveat) j["caveats"].add(c.what);
  }
  for (const auto& f : v.findings)
    j["findings"].add({{"field", f.field}, {"expected", f.expected}, {"found", f.found}});
  for (const auto& [what, text] : v.about) j["about"][what] = text;
  return j;
}

json::Value json_of(const std::string& receipt, const Error& error) {
  return {{"ok", false},
          {"verdict", "REFUSED"},
          {"receipt", receipt},
          {"error", error.message},
          {"exit_code", static_cast<int>(error.code)}};
}

Result<std::string> read_receipt(const std::string& path) {
  return read_file(path, kReceiptFile);
}

}  // namespace invar::generate
