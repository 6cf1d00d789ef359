// The results of a batch -> one file, a line for each row in the order of the input.
#pragma once

#include <vector>

#include "serve/batch.h"
#include "serve/batch/results.h"
#include "serve/batch/row.h"

namespace invar::serve {

// The line of a row in OpenAI's form.
json::Value merged_row(const BatchRow&, const BatchResult&);
// What becomes of a row that is no request.
BatchResult result_of_problem(const BatchRow&);
void count_result(const BatchResult&, BatchCounts&);

// Counts what is there. Writes the file, where no row is without a result.
Result<BatchCounts> merge_results(const std::vector<BatchRow>&, const BatchResults&, const BatchOptions&);

}  // namespace invar::serve
