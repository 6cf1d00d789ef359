// The numbers and codes of matrices in parts, see packed_matrix.h.
#include "weights/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "num/convert/convert.h"
#include "weights/scales.h"

namespace invar::weights {
namespace {

// Row r of AWQ is this half of its word.
constexpr int kAwqHalf[8] = {0, 4, 1, 5, 2, 6, 3, 7};
constexpr std::pair<std::string_view, PartType> kPartTypes[] = {
    {"F32", PartType::f32},      {"F16", PartType::f16},      {"BF16", PartType::bf16},
    {"F8_E8M0", PartType::e8m0}, {"F8_E4M3", PartType::e4m3}, {"F8_E5M2", PartType::e5m2},
    {"I8", PartType::i8},        {"I32", PartType::i32},      {"I64", PartType::i64},
    {"U8", PartType::u8}};

int64_t size_of_part(PartType t) {
  switch (t) {
    case PartType::i64: return 8;
    case PartType::f32:
    case PartType::i32: return 4;
    case PartType::f16:
    case PartType::bf16: return 2;
    default: return 1;
  }
}
int64_t divided_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
bool is_turned_order(CodeOrder o) {
  return o == CodeOrder::gptq || o == CodeOrder::awq;
}

}  // namespace

std::optional<PartType> part_type(std::string_view dtype) {
  for (const auto& [name, type] : kPartTypes)
    if (name == dtype) return type;
  return {};
}

uint32_t MatrixPart::word(int64_t i) const {
  const uint8_t* p = bytes + 4 * i;
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}
int64_t MatrixPart::integer(int64_t i) const {
  if (type == PartType::i64)
    return static_cast<int64_t>(word(2 * i) | static_cast<uint64_t>(word(2 * i + 1)) << 32);
  return static_cast<int32_t>(word(i));
}
float MatrixPart::number(int64_t i) const {
  const auto half = [&] { return static_cast<uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8); };
  switch (type) {
    case PartType::f16: return num::f32_from_f16(half());
    case PartType::bf16: return num::f32_from_bf16(half());
    case PartType::e8m0: return bytes[i] == 255 ? NAN : std::ldexp(1.0f, bytes[i] - 127);
    case PartType::e4m3: return e4m3(bytes[i]);
    default: return num::f32_from_bits(word(i));
  }
}

const char* PackedMatrix::element() const {
  return rounding == Rounding::bf16 ? "BF16" : rounding == Rounding::f16 ? "F16" : "F32";
}

int64_t PackedMatrix::scale_count() const {
  if (order == CodeOrder::high_first) return divided_up(rows * columns, scale_columns);
  return divided_up(rows, scale_rows) * across();
}

uint64_t PackedMatrix::bytes_of(PartOf part) const {
  const int64_t in_word = 32 / bits;
  const auto bytes = [&]() -> int64_t {
    if (part == kWhole) return size_of_part(parts[part].type);
    if (part == kColumnGroups) return 4 * columns;
    if (part == kTable) return 4 * 16;
    if (part == kOuterTable) return 4 * 256;
    if (part == kOuterScales) return 4 * divided_up(scale_count(), outer_scales);
    if (part == kScales) return size_of_part(parts[part].type) * scale_count();
    if (part == kZeros && parts[part].type == PartType::i8) return scale_count();
    if (part == kZeros) return 4 * divided_up(rows, in_word) * across();
    if (part != kCodes) return 0;
    if (order == CodeOrder::gptq) return 4 * divided_up(columns, in_word) * rows;
    if (order == CodeOrder::awq) return columns * (rows / 8) * 4;
    return order == CodeOrder::rows ? rows * row_bytes : (rows * columns + 1) / 2;
  }();
  return static_cast<uint64_t>(bytes);
}

// Codes of bytes one after the other, or of words of 4 bytes, one every `step` bytes.
void PackedMatrix::codes_of_words(const uint8_t* p, int64_t step, int64_t begin, int64_t end,
                                  uint8_t* out) const {
  const int width = step == 1 ? 8 : 32, in_word = width / bits;
  const auto mask = static_cast<uint8_t>((1 << bits) - 1);
  for (int64_t k = begin; k < end;) {
    const uint8_t* const w = p + k / in_word * step;
    uint32_t word = w[0];
    for (int b = 1; b < width / 8; ++b) word |= static_cast<uint32_t>(w[b]) << 8 * b;
    for (int i = static_cast<int>(k % in_word); i < in_word && k < end; ++i, ++k)
      *out++ = static_cast<uint8_t>(word >> bits * i) & mask;
  }
}

void PackedMatrix::codes(int64_t row, int64_t begin, int64_t end, uint8_t* out) const {
  const uint8_t* const p = parts[kCodes].bytes;
  const auto each = [&](auto place) {  // of a column: its byte, and whether the high half is meant
    for (int64_t k = begin; k < end; ++k) {
      const auto [at, high] = place(k);
      *out++ = bits == 8 ? p[at] : static_cast<uint8_t>(high ? p[at] >> 4 : p[at] & 15);
    }
  };
  struct Place {
    int64_t at;
    bool high;
  };
  const int half = kAwqHalf[row % 8];
  switch (order) {
    case CodeOrder::rows:
      if (bits == 8) return static_cast<void>(std::copy_n(p + row * row_bytes + begin, end - begin, out));
      return codes_of_words(p + row * row_bytes, 1, begin, end, out);
    case CodeOrder::gptq: return codes_of_words(p + row * 4, rows * 4, begin, end, out);
    case CodeOrder::awq:
      return each([&](int64_t k) { return Place{(k * (rows / 8) + row / 8) * 4 + half / 2, half % 2 != 0}; });
    case CodeOrder::high_first:
      return each([&](int64_t k) { return Place{(row * columns + k) / 2, (row * columns + k) % 2 == 0}; });
  }
}

int64_t PackedMatrix::group_of(int64_t k) const {
  return has(kColumnGroups) ? parts[kColumnGroups].word(k) : k / scale_columns;
}
int64_t PackedMatrix::scale_of_group(int64_t row, int64_t group) const {
  return is_turned_order(order) ? group * rows + row : row / scale_rows * across() + group;
}
int64_t PackedMatrix::scale_index(int64_t row, int64_t k) const {
  if (order == CodeOrder::high_first) return (row * columns + k) / scale_columns;
  return scale_of_group(row, group_of(k));
}

float PackedMatrix::scale(int64_t i) const {
  const MatrixPart& s = parts[kScales];
  if (has(kOuterScales)) {
    const MatrixPart& outer = parts[kOuterScales];
    return parts[kOuterTable].number(s.bytes[i]) * outer.number(i / outer_scales) + offset;
  }
  if (!has(kWhole)) return s.number(i);
  const float whole = parts[kWhole].number(0);
  return divided ? s.number(i) / whole : s.number(i) * whole;
}

int PackedMatrix::zero_of(int64_t row, int64_t group) const {
  const MatrixPart& z = parts[kZeros];
  if (z.type == PartType::none) return zero;
  if (z.type == PartType::i8) return 128 + static_cast<int8_t>(z.bytes[scale_of_group(row, group)]);
  const int64_t in_word = 32 / bits, words = divided_up(rows, in_word);
  const int shift = static_cast<int>(order == CodeOrder::awq ? 4 * kAwqHalf[row % 8] : row % in_word * bits);
  const uint32_t word =
      z.word(is_turned_order(order) ? group * words + row / in_word : row / in_word * across() + group);
  return static_cast<int>(word >> shift & ((1u << bits) - 1)) + zero_more;
}

// The numbers of all codes of a kind of floats.
static const float* numbers_of_codes(CodeKind kind) {
  using Numbers = std::array<float, 256>;
  static const auto all = [] {
    std::array<Numbers, 3> tables{};
    for (unsigned q = 0; q < 256; ++q)
      tables[0][q] = e4m3(q), tables[1][q] = e5m2(q), tables[2][q] = e2m1(q & 15);
    return tables;
  }();
  return all[kind == CodeKind::e4m3 ? 0 : kind == CodeKind::e5m2 ? 1 : 2].data();
}

void PackedMatrix::numbers(int64_t row, int64_t begin, int64_t end, float* out) const {
  const bool integers = kind == CodeKind::unsigned_integer || kind == CodeKind::signed_integer;
  float own[16] = {};
  const float* table = own;
  if (kind == CodeKind::of_table)
    for (int i = 0; i < 16; ++i) own[i] = parts[kTable].number(i);
  else if (!integers)
    table = numbers_of_codes(kind);
  const int flip = kind == CodeKind::signed_integer ? 0x80 : 0;
  uint8_t q[kLargestBlock];
  for (int64_t k = begin; k < end;) {
    // Those with one scale and zero.
    const int64_t at = order == CodeOrder::high_first ? row * columns + k : k;
    int64_t stop = k + (has(kColumnGroups) ? 1 : scale_columns - at % scale_columns);
    stop = std::min({stop, end, k + kLargestBlock});
    codes(row, k, stop, q);
    const float s = scale(scale_index(row, k));
    const int z = zero_of(row, group_of(k));
    for (int64_t i = k; i < stop; ++i)  // each product rounded
      out[i - begin] = (integers ? static_cast<float>((q[i - k] ^ flip) - z) : table[q[i - k]]) * s;
    if (factor != 1)
      for (int64_t i = k; i < stop; ++i) out[i - begin] *= factor;
    k = stop;
  }
}

int64_t turned_elements(std::string_view element, int64_t columns, int64_t n, int64_t first, int64_t last,
                        const NumbersOfRow& numbers, uint8_t* out) {
  std::vector<float> all, row(static_cast<size_t>(columns));
  for (int64_t deep = 0; first < last; first += deep) {
    const int64_t matrix = first / columns, begin = first % columns;
    deep = std::min(columns - begin, last - first);
    all.resize(static_cast<size_t>(deep * n));
    for (int64_t j = 0; j < n; ++j) {
      numbers(matrix * n + j, begin, begin + deep, row.data());
      for (int64_t k = 0; k < deep; ++k) all[static_cast<size_t>(k * n + j)] = row[static_cast<size_t>(k)];
    }
    if (!write_elements(element, all.data(), deep * n, out)) return first;
    out += all.size() * element_bytes(element);
  }
  return -1;
}

int64_t PackedMatrix::elements(int64_t first, int64_t last, uint8_t* out) const {
  if (matrices)
    return turned_elements(
        element(), columns, row_numbers(), first, last,
        [&](int64_t r, int64_t begin, int64_t end, float* to) { numbers(r, begin, end, to); }, out);
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t r = first; r < last; ++r, out += row.size() * element_bytes(element())) {
    numbers(r, 0, columns, row.data());
    if (!write_elements(element(), row.data(), columns, out)) return r;
  }
  return -1;
}

int PackedMatrix::block() const {
  const bool in_row = order != CodeOrder::high_first;  // no scale is of two rows
  for (const int size : {128, 64, 32, 16})
    if (columns % size == 0 &&
        (scale_columns % size == 0 || (in_row && (scale_columns >= columns || has(kColumnGroups)))))
      return size;
  return 0;
}

// Which table of bitsandbytes the codes are places in; nothing: another one.
std::optional<Codes> PackedMatrix::known_table() const {
  for (const Codes codes : {Codes::nf4, Codes::fp4}) {
    // A pointer: GCC 12 under -fsanitize=undefined indexes a conditional array wrongly.
    const float* const table = codes == Codes::nf4 ? kNf4 : kFp4;
    bool same = true;
    for (int i = 0; i < 16 && same; ++i) same = parts[kTable].word(i) == std::bit_cast<uint32_t>(table[i]);
    if (same) return codes;
  }
  return {};
}

std::optional<Coding> PackedMatrix::coding() const {
  // The product of a zero and the scale is exact, and no number is beyond the normal ones.
  constexpr float kLeast = 0x1p-90f, kMost = 0x1p90f;
  const bool of_table = kind == CodeKind::of_table;
  if (!block() || factor != 1 || of_table != (order == CodeOrder::high_first)) return {};
  Coding c{nullptr, bits, block(), zero, false, false};
  if (has(kColumnGroups)) {
    if (kind != CodeKind::unsigned_integer) return {};
    c.column_groups = across();
    for (int64_t k = 0; k < columns; ++k)
      if (group_of(k) >= across()) return {};
  }
  c.rounding = exact ? Rounding::none : rounding, c.has_zeros = has(kZeros), c.divided = divided;
  c.codes = kind == CodeKind::e4m3   ? Codes::e4m3
            : kind == CodeKind::e5m2 ? Codes::e5m2
            : kind == CodeKind::e2m1 ? Codes::e2m1
                                     : Codes::integers;
  if (of_table) {
    const auto known = known_table();
    if (!known) return {};
    c.codes = *known;
  }
  switch (of_table ? PartType::f32 : parts[kScales].type) {
    case PartType::f16: c.scale = ScaleType::f16; break;
    case PartType::bf16: c.scale = ScaleType::bf16; break;
    case PartType::f32: c.scale = ScaleType::f32; break;
    case PartType::e8m0: c.scale = ScaleType::e8m0; break;
    case PartType::e4m3: c.scale = ScaleType::scaled_e4m3; break;
    default: return {};
  }
  if (c.scale == ScaleType::scaled_e4m3) {
    if (!has(kWhole)) return {};
    c.whole = parts[kWhole].number(0);
    if (!(std::abs(c.whole) >= kLeast && std::abs(c.whole) <= kMost)) return {};
  } else if (has(kWhole)) {
    return {};
  }
  if (c.has_zeros && c.scale == ScaleType::f32) return {};
  if (c.scale == ScaleType::bf16 || c.scale == ScaleType::f32) {
    for (int64_t i = 0; i < scale_count(); ++i) {
      const float s = std::abs(scale(i));
      if (!(s == 0 || (s >= kLeast && s <= kMost))) return {};
    }
  }
  return c;
}

void PackedMatrix::read(int64_t row, int64_t at, BlockCodes& out) const {
  const int size = block();
  const int64_t begin = at * size;
  const uint8_t flip = kind == CodeKind::signed_integer ? 0x80 : 0;
  codes(row, begin, begin + size, out.q);
  for (int i = 0; i < size; ++i) out.q[i] ^= flip;
  if (has(kColumnGroups)) return;
  if (kind != CodeKind::of_table) return read_group(row, group_of(begin), out);
  out.d = std::bit_cast<uint32_t>(scale(scale_index(row, begin))), out.z = 0;
}

void PackedMatrix::read_group(int64_t row, int64_t group, BlockCodes& out) const {
  const MatrixPart& s = parts[kScales];
  const int64_t i = scale_of_group(row, group);
  const int64_t bytes = size_of_part(s.type);
  out.d = 0;
  for (int64_t b = 0; b < bytes; ++b) out.d |= static_cast<uint32_t>(s.bytes[i * bytes + b]) << 8 * b;
  out.z = static_cast<uint8_t>(has(kZeros) ? zero_of(row, group) : 0);
}

const Coding& coding_of(const PackedRows& rows) {
  return rows.coding ? *rows.coding : *rows.format->coding;
}
int block_of(const PackedRows& rows) {
  return rows.coding ? rows.coding->group : rows.format->block;
}
void read_codes(const PackedRows& rows, int64_t r, int64_t at, BlockCodes& out) {
  if (rows.matrix) return rows.matrix->read(rows.first + r, at, out);
  rows.format->coding->read(rows.row(r) + at * rows.format->bytes, out);
}
int64_t group_of(const PackedRows& rows, int64_t k) {
  return rows.matrix->group_of(k);
}
void read_group(const PackedRows& rows, int64_t r, int64_t group, BlockCodes& out) {
  rows.matrix->read_group(rows.first + r, group, out);
}

}  // namespace invar::weights
