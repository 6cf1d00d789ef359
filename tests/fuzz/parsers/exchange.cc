// Fuzzes what others answer: the files of a dispute, and the hub's listings and indices. What is
// read must print as a text that is read alike. An input: the answer, an index.
#include "dispute/exchange.h"
#include "fuzz/parsers/parts.h"
#include "hub/repo/listing.h"

namespace invar {
namespace {

void try_exchange(std::string_view text) {
  const auto read = dispute::parse(text, "answer.json");
  if (!read) return expect(read.error());
  const std::string printed = std::visit([](const auto& file) { return dispute::print(file); }, *read);
  const auto again = dispute::parse(printed, "again.json");
  if (!again) defect("a printed file is not read: " + again.error().message);
  if (std::visit([](const auto& file) { return dispute::print(file); }, *again) != printed)
    defect("a file changes when it is read");
}

void try_listing(const std::string& text, const std::string& index) {
  const auto listing = hub::parse_listing(text, "the hub");
  if (!listing) return expect(listing.error());
  for (const hub::RemoteFile& file : listing->files)
    if (file.path.starts_with('/') || ("/" + file.path + "/").find("/../") != std::string::npos)
      defect("a file outside its folder: " + file.path);
  hub::small_files(*listing);
  const auto weights = hub::weight_files(*listing, index, {"org/name", ""});
  if (!weights) expect(weights.error());
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  try_exchange(parts[0]);
  try_listing(std::string(parts[0]), std::string(parts.size() > 1 ? parts[1] : ""));
  if (const auto shards = hub::shards_of(std::string(parts.back()), "index.json"); !shards)
    expect(shards.error());
  return 0;
}
