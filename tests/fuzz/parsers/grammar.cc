// Fuzzes what answers have to fit: an object of grammar.2, a schema or a regular expression ends as
// an error or as masks in which no byte leads to a dead end. An input: the text, a walk.
#include "grammar/grammar.h"
#include "fuzz/parsers/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  json::Value asked = json::Value::object;
  auto read = json::parse(parts[0], "the input");
  if (!read)
    asked["regex"] = parts[0];
  else if (read->contains("regex") || read->contains("choice") || read->contains("tools"))
    asked = *std::move(read);
  else
    asked["json"] = *std::move(read);
  const auto text = grammar::canonical(asked);
  if (!text) return expect(text.error()), 0;
  if (const Status same = grammar::check(*text); !same) defect("another spelling: " + same.error().message);
  static const auto bytes = [] {
    std::vector<std::optional<std::string>> all;
    for (int b = 0; b < 256; ++b) all.emplace_back(std::string(1, static_cast<char>(b)));
    return std::make_shared<const grammar::Vocabulary>(std::move(all));
  }();
  const auto made = grammar::Constraint::make(*text, bytes);
  if (!made) return expect(made.error()), 0;
  const std::string walk(parts.size() > 1 ? parts[1] : "walk");
  std::vector<int32_t> answer;
  for (size_t step = 0; step < 100; ++step) {
    const auto allowed = (*made)->after(answer);
    if (!allowed) return expect(allowed.error()), 0;
    std::vector<int32_t> may;
    for (int32_t b = 0; b < 256; ++b)
      if (allowed->has(b)) may.push_back(b);
    if (may.empty() && !allowed->complete) defect("a dead end");
    if (may.empty() || allowed->all) return 0;
    answer.push_back(may[static_cast<uint8_t>(walk[step % walk.size()]) * (step + 1) % may.size()]);
  }
  return 0;
}
