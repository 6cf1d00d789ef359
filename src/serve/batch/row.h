// A line of a batch in OpenAI's form -> a request, with an id that is known before it is answered.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/text/json.h"

namespace invar::serve {

inline constexpr FileKind kBatchFile{"a file of a batch", uint64_t{16} << 30};

struct BatchRow {
  size_t line = 0;        // from 1
  std::string custom_id;  // "": the line says none
  // SHA-256 of the identity, the path and the body, in hexadecimal; "": the line is no request.
  // Rows of one id are one piece of work.
  std::string id;
  std::string url, body;
  bool rechecks = false;  // the line has "invar": {"recheck": true}
  std::string problem;    // why the line is no request
};

// `line` is JSON: custom_id, method, url and body. A body of a chat or a completion that says no
// seed gets one that follows from its bytes; others draw nothing.
BatchRow read_batch_row(std::string_view line, size_t number, const json::Value& identity);

// The rows of the lines that are not blank. A custom_id that an earlier line has is a problem.
std::vector<BatchRow> read_batch(std::string_view text, const json::Value& identity);

// Whether this shard of so many computes the row: by the begin of the id.
bool is_in_shard(const BatchRow&, uint64_t shard, uint64_t shards);
// Whether a sample of so many percent has the row: by other digits of the id.
bool is_in_sample(const BatchRow&, double percent);

}  // namespace invar::serve
