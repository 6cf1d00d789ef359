// Fuzzes files of numbers. An input: a byte that says which kind, then the file: 0 a GGUF file, 1 a
// NumPy array, 2 a plan, 3 a table as CSV, 4 an index of packed weights.
#include "checkpoint/gguf.h"
#include "fuzz/parsers/parts.h"
#include "generate/tensors/table.h"
#include "plan/plan.h"
#include "run/npy.h"
#include "weights/weight_file.h"

namespace invar {
namespace {

void try_gguf(std::string_view content) {
  put("a.gguf", content);
  if (const auto read = checkpoint::read_gguf(folder() + "/a.gguf"); !read) return expect(read.error());
}

// What is read is written as a file that gives the same tensor.
void try_npy(std::string_view content) {
  put("a.npy", content);
  const auto read = run::read_npy(folder() + "/a.npy");
  if (!read) return expect(read.error());
  put("b.npy", run::npy_of(*read));
  const auto again = run::read_npy(folder() + "/b.npy");
  if (!again) defect("a written array is not read: " + again.error().message);
  if (again->shape != read->shape || again->bytes != read->bytes)
    defect("an array changes when it is written");
}

// A plan prints as a text that is the same plan.
void try_plan(std::string_view content) {
  const auto read = plan::parse(content, "input");
  if (!read) return expect(read.error());
  const std::string text = plan::print(*read);
  const auto again = plan::parse(text, "again");
  if (!again) defect("a printed plan is not read: " + again.error().message);
  if (plan::print(*again) != text) defect("a plan changes when it is read");
}

// Every row of a table has a cell for each column.
void try_csv(std::string_view content) {
  const auto read = generate::parse_csv(content, "input");
  if (!read) return expect(read.error());
  if (read->lines.size() != read->cells.size()) defect("a row without a line");
  for (const auto& row : read->cells)
    if (row.size() != read->names.size()) defect("a row of another width");
}

// What Invar reads of an index is what it would write, and its ranges ascend.
void try_index(std::string_view content) {
  const auto read = weights::parse_index(content, "input");
  if (!read) return expect(read.error());
  uint64_t end = 0;
  for (const weights::PackedTensor& t : *read) {
    if (t.offset < end || !weights::fits_index(t)) defect("a tensor that no index has");
    end = t.offset + t.length;
  }
  const std::string text = weights::print_index(*read);
  const auto again = weights::parse_index(text, "again");
  if (!again || weights::print_index(*again) != text) defect("an index changes when it is read");
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: try_gguf(content); break;
    case 1: try_npy(content); break;
    case 2: try_plan(content); break;
    case 3: try_csv(content); break;
    default: try_index(content);
  }
  return 0;
}
