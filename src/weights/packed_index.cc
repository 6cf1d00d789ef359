// The text of an index, see packed_index.h.
#include "weights/packed_index.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <type_traits>

#include "weights/formats.h"

namespace invar::weights {
namespace {

constexpr std::string_view kHeading = "invar packed weights 1\n";
constexpr int64_t kMostNumbers = int64_t{1} << 40;
constexpr std::string_view kNoFile = "/";
constexpr std::string_view kInParts = "parts";  // in the place of a format

bool is_plain(std::string_view text) {
  return !text.empty() &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 32; });
}
// Of a file in the folder of the index.
bool is_plain_name(std::string_view name) {
  return is_plain(name) && name != ".." && name.find('/') == name.npos;
}

template <class T>
bool parse_number(std::string_view& line, T& value) {
  const std::string_view part = next_part(line);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  return error == std::errc() && end == part.data() + part.size() && value >= 0;
}

// Calls visit(number, most) for what describes a matrix beside its parts.
template <class Matrix, class Visit>
void each_number(Matrix& m, Visit visit) {
  visit(m.rows, kMostNumbers), visit(m.columns, kMostNumbers), visit(m.matrices, kMostNumbers);
  visit(m.kind, static_cast<int64_t>(CodeKind::of_table));
  visit(m.order, static_cast<int64_t>(CodeOrder::high_first));
  visit(m.rounding, static_cast<int64_t>(Rounding::f16)), visit(m.exact, 1), visit(m.bits, 8);
  visit(m.row_bytes, kMostNumbers), visit(m.scale_rows, kMostNumbers), visit(m.scale_columns, kMostNumbers);
  visit(m.zero, 255), visit(m.zero_more, 1), visit(m.divided, 1);
}

// The numbers of a matrix whose codes are places in a table, behind its parts.
template <class Matrix, class Visit>
void each_table_number(Matrix& m, Visit visit) {
  if (m.kind == CodeKind::of_table) visit(m.outer_scales), visit(m.offset);
}

// What the functions of a matrix take for granted.
bool is_sound(const PackedMatrix& m) {
  const bool of_table = m.kind == CodeKind::of_table, nibbles = m.kind == CodeKind::e2m1 || of_table;
  const bool bytes = !nibbles && m.kind != CodeKind::unsigned_integer;
  if (m.rows == 0 || m.columns == 0 || m.rows > kMostNumbers / m.columns || (m.bits != 4 && m.bits != 8))
    return false;
  if ((nibbles && m.bits != 4) || (bytes && m.bits != 8) || m.scale_rows == 0 || m.scale_columns == 0)
    return false;
  if (m.order == CodeOrder::rows && (m.row_bytes < m.columns * m.bits / 8 || m.row_bytes > 2 * m.columns + 8))
    return false;
  if (m.order == CodeOrder::awq && (m.bits != 4 || m.rows % 8 != 0)) return false;
  if (m.order != CodeOrder::rows && (m.scale_rows != 1 || m.columns * m.bits % 32 != 0)) return false;
  if (of_table != (m.order == CodeOrder::high_first)) return false;
  if (m.matrices && m.rows % m.matrices != 0) return false;
  const auto is_type = [&](PartOf part, std::initializer_list<PartType> types) {
    return std::ranges::count(types, m.parts[part].type) == 1;
  };
  using enum PartType;
  if (of_table) {
    const bool outer = m.has(kOuterScales);
    return m.has(kCodes) && is_type(kTable, {f32}) && is_type(kScales, {outer ? u8 : f32}) &&
           is_type(kOuterScales, {none, f32}) && is_type(kOuterTable, {outer ? f32 : none}) &&
           m.outer_scales > 0 && !m.has(kWhole) && !m.has(kZeros) && !m.has(kColumnGroups) && m.block() != 0;
  }
  if (!m.has(kCodes) || !is_type(kScales, {f32, f16, bf16, e8m0, e4m3}) || !is_type(kWhole, {none, f32}) ||
      !is_type(kZeros, {none, i8, i32}) || (m.parts[kZeros].type == i32 && m.scale_rows != 1))
    return false;
  for (const PartOf part : {kTable, kOuterScales, kOuterTable})
    if (m.has(part)) return false;
  return is_type(kColumnGroups, {none, i32}) && m.block() != 0;
}

bool parse_matrix(std::string_view line, PackedTensor& t) {
  t.name = next_part(line);
  PackedMatrix m;
  bool good = true;
  each_number(m, [&]<class T>(T& value, int64_t most) {
    int64_t number = 0;
    good = good && parse_number(line, number) && number <= most;
    if (good) value = static_cast<T>(number);
  });
  for (MatrixPart& part : m.parts) {
    int64_t type = 0;
    if (!good || !parse_number(line, type) || type > static_cast<int64_t>(PartType::u8)) return false;
    part.type = static_cast<PartType>(type);
    if (part.type == PartType::none) continue;
    if (!parse_number(line, part.at)) return false;
    part.file = next_part(line);
    if (!is_plain_name(part.file)) return false;
  }
  each_table_number(m, [&]<class T>(T& value) {
    int64_t number = 0;
    good = good && parse_number(line, number) && number <= (sizeof(T) == 4 ? UINT32_MAX : kMostNumbers);
    if constexpr (std::is_same_v<T, float>)
      value = std::bit_cast<float>(static_cast<uint32_t>(number));
    else
      value = number;
  });
  if (!good || !line.empty() || !is_plain(t.name) || !is_sound(m)) return false;
  t.rows = m.rows, t.numbers = m.columns;
  t.length = static_cast<uint64_t>(m.rows * m.columns) * element_bytes(m.element());
  t.matrix = std::make_shared<const PackedMatrix>(std::move(m));
  return true;
}

bool parse_line(std::string_view line, PackedTensor& t) {
  uint64_t length = 0;
  if (!parse_number(line, t.offset) || !parse_number(line, length) || t.offset > UINT64_MAX / 2) return false;
  t.format = next_part(line);
  if (t.format == kInParts) {
    t.format.clear();
    return parse_matrix(line, t) && t.length == length;
  }
  if (!parse_number(line, t.at) || !parse_number(line, t.rows) || !parse_number(line, t.numbers) ||
      !parse_number(line, t.head))
    return false;
  t.file = next_part(line), t.name = next_part(line);
  if (!line.empty()) {
    if (!parse_number(line, t.matrices) || !parse_number(line, t.second_at) || t.matrices == 0) return false;
    t.second_file = next_part(line);
    if (t.second_file == kNoFile) t.second_file.clear();
    if (!t.second_file.empty() && !is_plain_name(t.second_file)) return false;
  }
  const Format* f = find_format(std::string_view(t.format));
  if (!f || !f->coding || !line.empty() || !is_plain_name(t.file) || !is_plain(t.name)) return false;
  if (t.rows == 0 || t.numbers == 0 || t.numbers % f->block || t.rows > kMostNumbers / t.numbers)
    return false;
  if (t.matrices && (t.head || t.rows % t.matrices || (!t.second_file.empty() && t.rows / t.matrices % 2)))
    return false;
  if (t.head % 2 || (t.head && t.rows % t.head)) return false;
  t.length = static_cast<uint64_t>(t.rows * t.numbers) * element_bytes(f->element);
  return t.length == length;
}

std::string print_matrix(const PackedTensor& t) {
  std::string out = t.name;
  each_number(*t.matrix,
              [&](auto value, int64_t) { out += "\t" + std::to_string(static_cast<int64_t>(value)); });
  for (const MatrixPart& part : t.matrix->parts) {
    out += "\t" + std::to_string(static_cast<int>(part.type));
    if (part.type != PartType::none) out += "\t" + std::to_string(part.at) + "\t" + part.file;
  }
  each_table_number(*t.matrix, [&]<class T>(T value) {
    if constexpr (std::is_same_v<T, float>)
      out += "\t" + std::to_string(std::bit_cast<uint32_t>(value));
    else
      out += "\t" + std::to_string(value);
  });
  return out;
}

}  // namespace

std::string_view next_part(std::string_view& line) {
  const size_t end = std::min(line.find('\t'), line.size());
  const std::string_view part = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return part;
}
bool next_number(std::string_view& line, uint64_t& value) {
  return parse_number(line, value);
}

bool is_index(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1) == kIndexFile;
}

bool fits_index(const PackedTensor& t) {
  if (!t.matrix)
    return is_plain(t.file) && is_plain(t.name) && (t.second_file.empty() || is_plain(t.second_file));
  return is_plain(t.name) && std::ranges::all_of(t.matrix->parts, [](const MatrixPart& part) {
           return part.type == PartType::none || is_plain(part.file);
         });
}

std::string print_index(std::span<const PackedTensor> tensors) {
  std::string out(kHeading);
  for (const PackedTensor& t : tensors) {
    for (const uint64_t n : {t.offset, t.length}) out += std::to_string(n) + "\t";
    if (t.matrix) {
      out += std::string(kInParts) + "\t" + print_matrix(t) + "\n";
      continue;
    }
    out += t.format + "\t" + std::to_string(t.at) + "\t";
    for (const int64_t n : {t.rows, t.numbers, t.head}) out += std::to_string(n) + "\t";
    out += t.file + "\t" + t.name;
    if (t.matrices)
      out += "\t" + std::to_string(t.matrices) + "\t" + std::to_string(t.second_at) + "\t" +
             (t.second_file.empty() ? std::string(kNoFile) : t.second_file);
    out += "\n";
  }
  return out;
}

Result<std::vector<PackedTensor>> parse_index(std::string_view text, const std::string& path) {
  const auto wrong = [&](size_t line) {
    return bad_input(path + ":" + std::to_string(line) + ": this is no index of packed weights as Invar " +
                     "writes it; remove the folder, and it is made again");
  };
  if (!text.starts_with(kHeading)) return wrong(1);
  text.remove_prefix(kHeading.size());
  std::vector<PackedTensor> tensors;
  uint64_t end = 0;
  for (size_t line = 2; !text.empty(); ++line) {
    const size_t length = text.find('\n');
    PackedTensor t;
    if (length == std::string_view::npos || !parse_line(text.substr(0, length), t) || t.offset < end)
      return wrong(line);
    text.remove_prefix(length + 1);
    end = t.offset + t.length;
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace invar::weights
