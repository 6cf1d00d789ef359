// invar validate, invar verify: a receipt -> a verdict.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "generate/verify.h"

namespace invar::cli {
namespace {

using nlohmann::ordered_json;

std::string json_of(const generate::Verdict& v) {
  ordered_json j = {{"ok", v.ok()},
                    {"verdict", v.verdict},
                    {"receipt", v.receipt},
                    {"receipt_hash", v.receipt_hash},
                    {"compared", ordered_json::object()},
                    {"findings", ordered_json::array()}};
  for (const auto& [what, how] : v.compared) j["compared"][what] = how;
  for (const auto& f : v.findings)
    j["findings"].push_back({{"field", f.field}, {"expected", f.expected}, {"found", f.found}});
  return line_of(j);
}

int print(const ReceiptCommand& c, const Result<generate::Verdict>& verdict) {
  if (!verdict) return fail(verdict.error());
  std::fputs((c.json ? json_of(*verdict) : generate::report(*verdict)).c_str(), stdout);
  std::fflush(stdout);
  return verdict->ok() ? 0 : static_cast<int>(Code::failed);
}

}  // namespace

int validate(const ReceiptCommand& c) {
  const auto text = generate::read_receipt(c.receipt);
  return text ? print(c, generate::validate(*text, c.receipt)) : fail(text.error());
}

int verify(const ReceiptCommand& c) {
  const auto text = generate::read_receipt(c.receipt);
  if (!text) return fail(text.error());
  Console console(c.json);
  return print(c, generate::verify(*text, c.receipt, c.model, c.execution, console));
}

}  // namespace invar::cli
