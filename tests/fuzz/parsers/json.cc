// Fuzzes JSON: what is read comes back from every form in which it is written, and what is not has
// its place in the text.
#include "base/text/json.h"

#include "fuzz/parsers/parts.h"

namespace invar {
namespace {

// A text of Invar's own is read, and written alike.
void expect_written(const json::Value& value, json::Form form) {
  const std::string text = json::dump(value, form);
  const auto again = json::parse(text, "again");
  if (!again) defect("a written text is not read: " + again.error().message);
  if (json::dump(*again, form) != text) defect("a value changes when it is written: " + text);
  if (json::compact(*again) != json::compact(value)) defect("another value in another form: " + text);
}

void try_parse(std::string_view text) {
  json::Failure failure;
  const auto value = json::parse(text, "input", &failure);
  if (!value) {
    if (failure.byte > text.size() + 1) defect("a failure behind the text");
    return expect(value.error());
  }
  for (const json::Form form : {json::Form{}, {2, false}, {-1, true}, {1, true}})
    expect_written(*value, form);
}

// As most programs read: of members of one name the last, numbers as Invar spells them.
void try_read(std::string_view text) {
  for (const json::Order order : {json::Order::by_name, json::Order::as_written}) {
    const auto value = json::read(text, "input", order);
    if (!value) return expect(value.error());
    if (json::repeated_name(*value)) defect("a member is there twice");
    const auto again = json::read(json::dump(*value), "again", order);
    if (!again || *again != *value || json::dump(*again) != json::dump(*value))
      defect("a value changes when it is read again: " + json::dump(*value));
    if (json::sorted(*value) != *value) defect("a sorted value is another one");
  }
}

// Any bytes are a string.
void try_quote(std::string_view text) {
  const auto string = json::parse(json::quote(text), "a string");
  if (!string || !string->is_string()) defect("a quoted text is no string");
  if (json::quote(string->text) != json::quote(text)) defect("a quoted text changes");
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  invar::try_parse(text), invar::try_read(text), invar::try_quote(text);
  return 0;
}
