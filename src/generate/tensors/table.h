// Tables of rows as CSV (RFC 4180): columns become a program's inputs by their names, and its
// outputs become columns. spec/onnx.md onnx.55.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "run/function.h"

namespace invar::generate {

struct Table {
  std::string path;
  std::vector<std::string> names;               // of the columns
  std::vector<std::vector<std::string>> cells;  // of each row, one for each name
  std::vector<size_t> lines;                    // where each row begins in the file, from 1
};

// An input of a model, [rows] or [rows, width].
struct TablePort {
  std::string name;
  DType dtype;
  size_t rank;
  int64_t rows, width;  // -1: any number
};

// What a model says of its inputs, of strings and of columns.
struct TableEdges {
  std::vector<TablePort> ports;
  std::vector<std::string> strings;                         // number i of the program is strings[i]
  std::set<std::string> inputs, outputs;                    // of the program that are such numbers
  std::map<std::string, std::vector<std::string>> columns;  // of an output: the names of its columns
};

// Errors name the line and column.
Result<Table> read_csv(const std::string& path);
Result<Table> parse_csv(std::string_view text, const std::string& path);
// What a model's file says; not_covered in a build without the compiler.
Result<TableEdges> table_edges(const std::string& model);
// The inputs of a model. Strings that it does not know are numbered behind its own, which `edges`
// then has, too. Errors name the row and column.
Result<run::Function::NamedTensors> table_inputs(const Table&, TableEdges& edges);
// The outputs as CSV: a row for each of the table's rows.
Result<std::string> csv_of(const run::Function::NamedTensors& outputs, const TableEdges&, size_t rows);

}  // namespace invar::generate
