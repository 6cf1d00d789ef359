// Tables as CSV, see table.h.
#include "generate/tensors/table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/file/file.h"
#include "base/text/display.h"
#include "base/text/read_float.h"
#include "base/text/utf8.h"

namespace invar::generate {
namespace {

constexpr std::string_view kParquet = "PAR1";
// How files begin that are taken for tables.
constexpr std::pair<std::string_view, std::string_view> kOtherFiles[] = {
    {"PK\x03\x04", "a ZIP or Excel file"},
    {"\x1f\x8b", "compressed by gzip"},
    {"\xff\xfe", "text in UTF-16"},
    {"\xfe\xff", "text in UTF-16"}};

// A name or a cell, on one line.
std::string shown(const std::string& text) {
  return "\"" + excerpt(text) + "\"";
}

// Records of fields, with the line where each record begins.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string path) : rest_(text), path_(std::move(path)) {}
  bool at_end() const { return rest_.empty(); }
  size_t line() const { return line_; }
  Result<std::vector<std::string>> record() {
    std::vector<std::string> fields;
    for (;;) {
      INVAR_TRY(std::string field, this->field(fields.size() + 1));
      fields.push_back(std::move(field));
      if (rest_.empty()) return fields;
      const char end = rest_.front();
      rest_.remove_prefix(1);
      if (end == ',') continue;
      if (end == '\r' && rest_.starts_with('\n')) rest_.remove_prefix(1);
      ++line_;
      return fields;
    }
  }

 private:
  Error wrong(size_t column, const std::string& what) const {
    return bad_input(path_ + ": line " + std::to_string(line_) + ", column " + std::to_string(column) + ": " +
                     what);
  }
  // Up to the comma or the end of the line.
  Result<std::string> field(size_t column) {
    std::string out;
    if (!rest_.starts_with('"')) {
      const size_t end = std::min(rest_.find_first_of(",\r\n\""), rest_.size());
      if (end < rest_.size() && rest_[end] == '"')
        return wrong(column, "a quote inside a field that does not begin with one");
      out = rest_.substr(0, end);
      rest_.remove_prefix(end);
      return out;
    }
    const size_t began = line_;
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      if (quote == rest_.npos) {
        line_ = began;
        return wrong(column, "a quoted field that does not end");
      }
      for (char c : rest_.substr(0, quote)) line_ += c == '\n';
      out += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      out += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_.find_first_of(",\r\n") != 0)
      return wrong(column, "text behind the quote that ends the field");
    return out;
  }

  std::string_view rest_;
  std::string path_;
  size_t line_ = 1;
};

// One column of numbers, in the host's byte order.
class CellReader {
 public:
  CellReader(const Table& table, TableEdges& edges) : table_(table), edges_(edges) {
    for (size_t i = 0; i < edges.strings.size(); ++i) numbers_.emplace(edges.strings[i], i);
  }
  Status append(size_t row, size_t column, DType type, bool is_string, std::vector<std::byte>& out) {
    const std::string& cell = table_.cells[row][column];
    if (is_string) {
      const auto [at, is_new] = numbers_.emplace(cell, edges_.strings.size());
      if (is_new) edges_.strings.push_back(cell);
      return put(static_cast<int64_t>(at->second), out), Status();
    }
    switch (type) {
      case DType::f32: return real<float>(row, column, out);
      case DType::f64: return real<double>(row, column, out);
      case DType::i64: return whole<int64_t>(row, column, out);
      case DType::i32: return whole<int32_t>(row, column, out);
      case DType::boolean: return truth(row, column, out);
      default:
        return not_covered(table_.path + ": column " + shown(table_.names[column]) + ": the model reads " +
                           std::string(name_of(type)) +
                           ", which tables have not: give --input and --tensors-output");
    }
  }

 private:
  Error wrong(size_t row, size_t column, const char* what) const {
    return bad_input(table_.path + ": row " + std::to_string(row + 1) + " (line " +
                     std::to_string(table_.lines[row]) + "), column " + shown(table_.names[column]) + ": " +
                     shown(table_.cells[row][column]) + " is " + what);
  }
  template <class T>
  static void put(T v, std::vector<std::byte>& out) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&v);
    out.insert(out.end(), bytes, bytes + sizeof v);
  }
  // An empty cell is a number that is missing: NaN.
  template <class T>
  Status real(size_t row, size_t column, std::vector<std::byte>& out) const {
    std::string_view text = table_.cells[row][column];
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    T v = __builtin_nan("");
    if (text == "inf" || text == "Infinity" || text == "-inf" || text == "-Infinity") {
      v = text[0] == '-' ? -__builtin_inf() : __builtin_inf();
    } else if (!text.empty() && text != "nan" && text != "NaN") {
      const char* last = text.data() + text.size();
      const char* first = text.data() + (text.starts_with('+') && text.size() > 1 && text[1] != '-' ? 1 : 0);
      auto [end, error] = read_float(first, last, v);
      // Nearer to 0 than any normal number.
      if (double wide = 0; sizeof v == 4 && error == std::errc::result_out_of_range) {
        const auto again = read_float(first, last, wide);
        if (again.ec == std::errc() && wide < 1 && wide > -1) v = static_cast<T>(wide), error = again.ec;
      }
      if (end != last || error == std::errc::invalid_argument)
        return wrong(row, column, "no number; a number that is missing is an empty cell or NaN");
      if (error != std::errc()) return wrong(row, column, "out of range");
    }
    return put(v, out), Status();
  }
  template <class T>
  Status whole(size_t row, size_t column, std::vector<std::byte>& out) const {
    const std::string& text = table_.cells[row][column];
    T v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size())
      return wrong(row, column,
                   sizeof v == 8 ? "no int64, which the model reads" : "no int32, which the model reads");
    return put(v, out), Status();
  }
  Status truth(size_t row, size_t column, std::vector<std::byte>& out) const {
    const std::string& text = table_.cells[row][column];
    const bool yes = text == "true" || text == "True" || text == "1";
    if (!yes && text != "false" && text != "False" && text != "0")
      return wrong(row, column, "not true, false, 1 or 0");
    return put(static_cast<uint8_t>(yes), out), Status();
  }

  const Table& table_;
  TableEdges& edges_;
  std::unordered_map<std::string, size_t> numbers_;
};

constexpr size_t kMaxListed = 32;  // names of columns in one error

std::string text_of(const std::vector<size_t>& columns, const std::vector<std::string>& names) {
  std::string text;
  for (const size_t i : columns) text += (text.empty() ? "" : ", ") + shown(names[i]);
  return text;
}

// Whether the first line is a row: numbers that are not those that columns without names have, 0,
// 1, 2, ...
bool are_numbers(const std::vector<std::string>& names) {
  bool counts = true;
  for (size_t i = 0; i < names.size(); ++i) {
    double v = 0;
    const auto [end, error] = read_float(names[i].data(), names[i].data() + names[i].size(), v);
    if (names[i].empty() || error != std::errc() || end != names[i].data() + names[i].size()) return false;
    counts &= names[i] == std::to_string(i);
  }
  return !counts;
}

// The columns of an input, none if they are missing: by its name, or NAME.0, NAME.1, ..., or all of
// the table.
Result<std::vector<size_t>> columns_for(const Table& table, const TablePort& port, bool alone) {
  const auto find = [&](const std::string& name) -> std::optional<size_t> {
    const auto at = std::find(table.names.begin(), table.names.end(), name);
    if (at == table.names.end()) return std::nullopt;
    return static_cast<size_t>(at - table.names.begin());
  };
  std::vector<size_t> columns;
  const int64_t width = port.rank == 2 ? port.width : 1;
  if (const auto own = find(port.name); own && (width == 1 || width < 0)) return std::vector<size_t>{*own};
  while (const auto next = find(port.name + "." + std::to_string(columns.size()))) columns.push_back(*next);
  if (columns.empty() && alone && are_numbers(table.names))
    return bad_input(table.path +
                     ": line 1: numbers, not the names of columns: put a line of names in front "
                     "of it, each beginning with a letter");
  if (columns.empty() && alone)
    for (size_t i = 0; i < table.names.size(); ++i) columns.push_back(i);
  if (width >= 0 && !columns.empty() && static_cast<int64_t>(columns.size()) != width)
    return bad_input(table.path + ": input \"" + port.name + "\" has " + std::to_string(width) +
                     " columns, and the table has " + std::to_string(columns.size()) +
                     " for it: " + text_of(columns, table.names));
  return columns;
}

// All columns that the model reads and the table lacks, and those that it has.
Error lacks_columns(const Table& table, const std::vector<std::string>& missing) {
  std::string text = table.path + (missing.size() == 1 ? ": no column " : ": no columns ");
  for (const std::string& name : missing) text += (&name == missing.data() ? "\"" : ", \"") + name + "\"";
  std::vector<size_t> all(std::min(table.names.size(), kMaxListed));
  std::iota(all.begin(), all.end(), size_t{0});
  text += ", which the model reads; the table has " + text_of(all, table.names) +
          (all.size() < table.names.size() ? ", ..." : "");
  for (const char separator : {';', '\t', '|'})
    if (table.names.size() == 1 && table.names[0].find(separator) != std::string::npos)
      text += ": separate columns by commas";
  return bad_input(text);
}

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos && !text.empty()) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

template <class T>
T element(const run::Tensor& t, size_t i) {
  T v;
  std::memcpy(&v, t.bytes.data() + i * sizeof v, sizeof v);
  return v;
}
template <class T>
std::string shortest(T v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v);
  return {text, end.ptr};
}

std::string cell_of(const run::Tensor& t, size_t i, const std::vector<std::string>* strings) {
  switch (t.dtype) {
    case DType::f32: return shortest(element<float>(t, i));
    case DType::f64: return shortest(element<double>(t, i));
    case DType::i32: return shortest(element<int32_t>(t, i));
    case DType::boolean: return element<uint8_t>(t, i) ? "true" : "false";
    case DType::i64: {
      const auto n = element<int64_t>(t, i);
      if (strings && n >= 0 && n < static_cast<int64_t>(strings->size()))
        return quoted_cell((*strings)[static_cast<size_t>(n)]);
      return shortest(n);
    }
    default: return {};
  }
}

}  // namespace

Result<Table> parse_csv(std::string_view text, const std::string& path) {
  if (text.starts_with(kParquet))
    return not_covered(path +
                       ": a Parquet file: invar.sklearn.read_table reads it in Python, or write it as CSV");
  for (const auto& [begin, kind] : kOtherFiles)
    if (text.starts_with(begin))
      return bad_input(path + ": " + std::string(kind) + ", no CSV: write it as CSV in UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Table table;
  table.path = path;
  CsvReader reader(text, path);
  if (reader.at_end()) return bad_input(path + ": empty: the first line names the columns");
  INVAR_TRY(table.names, reader.record());
  for (size_t i = 0; i < table.names.size(); ++i) {
    if (std::find(table.names.begin(), table.names.begin() + static_cast<std::ptrdiff_t>(i),
                  table.names[i]) != table.names.begin() + static_cast<std::ptrdiff_t>(i))
      return bad_input(path + ": line 1, column " + std::to_string(i + 1) + ": " + shown(table.names[i]) +
                       " names two columns");
  }
  while (!reader.at_end()) {
    const size_t line = reader.line();
    INVAR_TRY(std::vector<std::string> cells, reader.record());
    if (cells.size() == 1 && cells[0].empty() && table.names.size() > 1) continue;  // an empty line
    if (cells.size() != table.names.size())
      return bad_input(path + ": row " + std::to_string(table.cells.size() + 1) + " (line " +
                       std::to_string(line) + "): " + std::to_string(cells.size()) + " fields for " +
                       std::to_string(table.names.size()) + " columns");
    for (size_t i = 0; i < cells.size(); ++i)
      if (valid_prefix(cells[i]) != cells[i].size())
        return bad_input(path + ": row " + std::to_string(table.cells.size() + 1) + " (line " +
                         std::to_string(line) + "), column " + shown(table.names[i]) + ": not UTF-8");
    table.cells.push_back(std::move(cells));
    table.lines.push_back(line);
  }
  if (table.cells.empty()) return bad_input(path + ": has no rows behind the names of its columns");
  return table;
}

Result<Table> read_csv(const std::string& path) {
  INVAR_TRY(const MappedFile file, MappedFile::open(path));
  return parse_csv(file.text(), path);
}

Result<run::Function::NamedTensors> table_inputs(const Table& table, TableEdges& edges) {
  run::Function::NamedTensors inputs;
  const auto rows = static_cast<int64_t>(table.cells.size());
  CellReader reader(table, edges);
  std::vector<std::string> missing;
  for (const TablePort& port : edges.ports) {
    if (port.rank != 1 && port.rank != 2)
      return bad_input(table.path + ": input \"" + port.name + "\" of the model has " +
                       std::to_string(port.rank) + " dimensions, and a table has rows and columns");
    if (port.rows >= 0 && port.rows != rows)
      return bad_input(table.path + ": " + std::to_string(rows) + " rows, and the model takes " +
                       std::to_string(port.rows));
    INVAR_TRY(const std::vector<size_t> columns, columns_for(table, port, edges.ports.size() == 1));
    if (columns.empty())
      missing.push_back(port.rank == 2 && port.width > 1
                            ? port.name + ".0\" ... \"" + port.name + "." + std::to_string(port.width - 1)
                            : port.name);
    if (!missing.empty()) continue;
    run::Tensor t{port.dtype, {rows}, {}};
    if (port.rank == 2) t.shape.push_back(static_cast<int64_t>(columns.size()));
    for (size_t row = 0; row < table.cells.size(); ++row)
      for (size_t column : columns)
        INVAR_CHECK_OK(reader.append(row, column, port.dtype, edges.inputs.contains(port.name), t.bytes));
    inputs.emplace_back(port.name, std::move(t));
  }
  if (!missing.empty()) return lacks_columns(table, missing);
  return inputs;
}

Result<std::string> csv_of(const run::Function::NamedTensors& outputs, const TableEdges& edges, size_t rows) {
  std::string names, text;
  std::vector<size_t> widths;
  for (const auto& [name, t] : outputs) {
    const bool fits = !t.shape.empty() && t.shape.size() <= 2 && t.shape[0] == static_cast<int64_t>(rows);
    if (!fits || size_of(t.dtype) == 0 || (rows && cell_of(t, 0, nullptr).empty() && t.bytes.size()))
      return not_covered("output \"" + name + "\" is no column of " + std::to_string(rows) +
                         " rows: leave --table out and give --input and --tensors-output");
    const size_t width = t.shape.size() == 2 ? static_cast<size_t>(t.shape[1]) : 1;
    const auto known = edges.columns.find(name);
    const bool labelled = known != edges.columns.end() && known->second.size() == width;
    for (size_t i = 0; i < width; ++i) {
      const std::string column = labelled     ? name + "." + known->second[i]
                                 : width == 1 ? name
                                              : name + "." + std::to_string(i);
      names += (names.empty() ? "" : ",") + quoted_cell(column);
    }
    widths.push_back(width);
  }
  for (size_t row = 0; row < rows; ++row) {
    bool first = true;
    for (size_t o = 0; o < outputs.size(); ++o)
      for (size_t i = 0; i < widths[o]; ++i, first = false)
        text +=
            (first ? "" : ",") + cell_of(outputs[o].second, row * widths[o] + i,
                                         edges.outputs.contains(outputs[o].first) ? &edges.strings : nullptr);
    text += "\n";
  }
  return names + "\n" + text;
}

}  // namespace invar::generate
