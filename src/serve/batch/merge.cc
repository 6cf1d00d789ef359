#include "serve/batch/merge.h"

#include <cerrno>
#include <cstring>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/file/write_files.h"
#include "base/hash/sha256.h"
#include "serve/protocol/call.h"

namespace invar::serve {

using json::Value;

json::Value merged_row(const BatchRow& row, const BatchResult& result) {
  Value out = {{"id", row.id.empty() ? Value() : Value("batch_req_" + row.id.substr(0, 32))},
               {"custom_id", row.custom_id.empty() ? Value() : Value(row.custom_id)},
               {"response", nullptr},
               {"error", nullptr}};
  if (result.status > 0)
    out["response"] = {{"status_code", result.status},
                       {"request_id", row.id.empty() ? Value() : Value(row.id)},
                       {"body", result.body}};
  if (!result.is_answer()) out["error"] = {{"code", result.kind}, {"message", result.message}};
  return out;
}

BatchResult result_of_problem(const BatchRow& row) {
  BatchResult result;
  const Problem problem{400, row.problem};
  result.status = problem.status, result.body = json_of(problem);
  result.kind = "refused", result.message = row.problem;
  return result;
}

void count_result(const BatchResult& result, BatchCounts& counts) {
  size_t& of = result.is_answer()         ? counts.answers
               : result.kind == "refused" ? counts.refused
               : result.kind == "crashed" ? counts.crashed
                                          : counts.failed;
  ++of;
}

Result<BatchCounts> merge_results(const std::vector<BatchRow>& rows, const BatchResults& results,
                                  const BatchOptions& options) {
  BatchCounts counts;
  counts.rows = rows.size();
  const std::string path = options.output.empty() ? options.folder + "/output.jsonl" : options.output;
  Sha256 digest;
  // A file that is not whole leaves nothing.
  const int failure = replace_content(path, [&](int file) {
    for (const BatchRow& row : rows) {
      const auto result = row.id.empty() ? result_of_problem(row) : results.find(row.id);
      if (!result) {
        ++counts.missing;
        continue;
      }
      count_result(*result, counts);
      if (counts.missing > 0) continue;
      const std::string line = json::dump(merged_row(row, *result)) + "\n";
      digest.update(line);
      if (const int error = write_all(file, line)) return error;
    }
    return counts.missing > 0 ? EAGAIN : 0;
  });
  if (counts.missing > 0) return counts;
  if (failure != 0) return bad_input(path + ": cannot be written: " + std::strerror(failure));
  counts.output = path, counts.sha256 = to_hex(digest.finish());
  return counts;
}

Result<BatchCounts> merge_batch(const BatchOptions& options) {
  INVAR_TRY(const BatchResults results, BatchResults::open(options.folder, Value::object));
  INVAR_TRY(const Value identity, results.identity());
  INVAR_TRY(const std::string text, read_file(options.input, kBatchFile));
  INVAR_CHECK_OK(results.agree(identity, to_hex(sha256(text))));
  INVAR_TRY(const BatchCounts counts, merge_results(read_batch(text, identity), results, options));
  if (counts.missing > 0)
    return bad_input(options.folder + ": " + std::to_string(counts.missing) + " of " +
                     std::to_string(counts.rows) +
                     " rows have no result yet: run `invar batch` without --merge again");
  return counts;
}

}  // namespace invar::serve
