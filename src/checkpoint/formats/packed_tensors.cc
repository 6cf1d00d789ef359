// The tensors of packed matrices -> those of their numbers.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/file/file.h"
#include "base/text/json.h"
#include "checkpoint/folder.h"
#include "checkpoint/formats/quantization.h"
#include "num/convert/convert.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"
#include "weights/formats.h"

namespace invar::checkpoint {
namespace {

using onnx::quote;

// A tensor as it is stored, in a mapped file.
struct PartOfMatrix {
  std::string dtype;
  std::vector<int64_t> shape;
  const uint8_t* bytes = nullptr;
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }
  uint32_t word(int64_t i) const {
    const uint8_t* p = bytes + 4 * i;
    return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
  }
  uint16_t half(int64_t i) const { return static_cast<uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8); }
  // Element i of floats.
  float number(int64_t i) const {
    if (dtype == "F32") return num::f32_from_bits(word(i));
    if (dtype == "F16") return num::f32_from_f16(half(i));
    if (dtype == "BF16") return num::f32_from_bf16(half(i));
    if (dtype == "F8_E8M0") return bytes[i] == 255 ? NAN : std::ldexp(1.0f, bytes[i] - 127);
    return e4m3(bytes[i]);
  }
  // Four bits of exponent, three of mantissa, no infinity (OCP 8-bit floating point).
  static float e4m3(uint8_t b) {
    const int exponent = b >> 3 & 15, mantissa = b & 7;
    if (exponent == 15 && mantissa == 7) return NAN;
    const float size = exponent ? std::ldexp(static_cast<float>(8 + mantissa), exponent - 10)
                                : std::ldexp(static_cast<float>(mantissa), -9);
    return b & 0x80 ? -size : size;
  }
};

constexpr float kFp4[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
// Of the eight halves of a word of AWQ: the column of each.
constexpr int kAwqHalf[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of column j, among those of a word

// A matrix of numbers; `fill` makes a row.
struct MatrixOfNumbers {
  int64_t rows = 0, columns = 0;
  std::string element = "F32";
  std::function<void(int64_t row, float* out)> fill = {};
};

// The bits of a number in a type of floats, rounded once.
constexpr uint32_t kNotFinite = 0xffffffff;
uint32_t bits_of_element(std::string_view element, float number) {
  if (!std::isfinite(number)) return kNotFinite;
  if (element == "F32") return num::f32_bits(number);
  const bool wide = element == "BF16";
  const uint32_t bits = wide ? num::bf16_from_f32(number) : num::f16_from_f32(number);
  return (bits & 0x7fff) >= (wide ? 0x7f80u : 0x7c00u) ? kNotFinite : bits;
}

class PackedReader {
 public:
  PackedReader(Checkpoint& checkpoint, const Quantization& q) : checkpoint_(checkpoint), q_(q) {}

  Status run() {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : checkpoint_.tensors) names.push_back(name);
    for (const std::string& name : names) {
      const std::string end = name.substr(name.rfind('.') + 1);
      base_ = name.substr(0, name.size() - end.size());  // with its dot
      const auto found = checkpoint_.tensors.find(name);
      if (found == checkpoint_.tensors.end()) continue;  // a part of a matrix before
      const CheckpointTensor& t = found->second;
      const bool integers = q_.by == PackedBy::gptq || q_.by == PackedBy::awq;
      std::optional<Result<MatrixOfNumbers>> made;
      if (integers && end == "qweight") made = q_.by == PackedBy::gptq ? gptq() : awq();
      if (!integers && end == "weight_packed") made = packed_integers_or_fp4();
      if (!integers && end == "weight" && (t.dtype == "F8_E4M3" || t.dtype == "I8")) made = scaled();
      if (q_.by == PackedBy::bitsandbytes && end == "weight" && t.dtype == "U8") made = four_bits_by_table();
      if (q_.by == PackedBy::modelopt && end == "weight" && t.dtype == "U8")
        made = fp4("weight", "weight_scale_2");
      if (!made) continue;
      if (!*made) return made->error();
      INVAR_CHECK_OK(take(**std::move(made)));
    }
    // Ranges of activations, which are not rounded here.
    std::erase_if(checkpoint_.tensors, [](const auto& tensor) {
      const std::string& name = tensor.first;
      return name.ends_with(".input_scale") || name.ends_with(".input_global_scale") ||
             name.ends_with(".activation_scale");
    });
    return {};
  }

 private:
  // Where the numbers of a matrix lie among its scales.
  struct Scales {
    PartOfMatrix part;
    int64_t rows = 1, columns = 1, across = 1;  // of a block; blocks across
    int64_t at(int64_t row, int64_t column) const { return row / rows * across + column / columns; }
  };

  Error wrong(const std::string& part, const std::string& what) const {
    return bad_input(checkpoint_.folder + ": tensor " + quote(base_ + part) + " " + what);
  }

  // The part with this name, which is then no tensor of the model.
  Result<PartOfMatrix> part(const std::string& name, std::initializer_list<std::string_view> dtypes) {
    const auto it = checkpoint_.tensors.find(base_ + name);
    if (it == checkpoint_.tensors.end()) return wrong(name, "is missing, a part of a packed matrix");
    const CheckpointTensor& t = it->second;
    if (std::ranges::find(dtypes, t.dtype) == dtypes.end())
      return wrong(name, "is stored as " + t.dtype + ", which such a part of a packed matrix is not");
    auto& file = files_[t.file];
    if (!file) {
      INVAR_TRY(MappedFile map, MappedFile::open(checkpoint_.folder + "/" + t.file));
      file = std::make_shared<const MappedFile>(std::move(map));
    }
    if (t.offset + t.length > file->bytes().size()) return wrong(name, "is cut short: its file was changed");
    used_.push_back(base_ + name), kept_.push_back(file);
    return PartOfMatrix{t.dtype, t.shape, reinterpret_cast<const uint8_t*>(file->bytes().data()) + t.offset};
  }
  bool has(const std::string& name) const { return checkpoint_.tensors.contains(base_ + name); }

  Status expect(const std::string& name, const PartOfMatrix& p, std::vector<int64_t> shape) const {
    if (p.shape == shape) return {};
    return wrong(name, "has shape " + onnx::shape_text(p.shape) + ", but the matrix asks for " +
                           onnx::shape_text(shape));
  }

  // Scales of a matrix: one, one a row, or one a block or group.
  Result<Scales> scales(const std::string& name, int64_t rows, int64_t columns,
                        std::initializer_list<std::string_view> dtypes) {
    Scales s;
    INVAR_TRY(s.part, part(name, dtypes));
    const std::vector<int64_t>& shape = s.part.shape;
    const int64_t count = s.part.count();
    if (q_.block_rows && shape.size() == 2) {
      s.rows = q_.block_rows, s.columns = q_.block_columns;
    } else if (count == 1) {
      s.rows = rows, s.columns = columns;
    } else if (count == rows && (shape.size() == 1 || shape.back() == 1)) {
      s.rows = 1, s.columns = columns;
    } else if (shape.size() == 2 && q_.group) {
      s.rows = 1, s.columns = q_.group;
    } else {
      return wrong(name, "has shape " + onnx::shape_text(shape) +
                             ", which is neither one scale, nor one a row, nor "
                             "one a group or block of quantization_config");
    }
    s.across = (columns + s.columns - 1) / s.columns;
    const int64_t down = (rows + s.rows - 1) / s.rows;
    if (count != down * s.across || (down * s.across > 1 && shape.size() == 2 && shape[0] != down))
      return wrong(name, "has shape " + onnx::shape_text(shape) + ", but the matrix asks for " +
                             onnx::shape_text(std::vector{down, s.across}));
    return s;
  }

  // FP8 or eight bits of integers, a byte each.
  Result<MatrixOfNumbers> scaled() {
    INVAR_TRY(const PartOfMatrix w, part("weight", {"F8_E4M3", "I8"}));
    if (w.shape.size() != 2) return wrong("weight", "is no matrix: " + onnx::shape_text(w.shape));
    const bool compressed = q_.by == PackedBy::compressed_tensors, integers = w.dtype == "I8";
    if (integers && !compressed) return wrong("weight", "is stored as I8, which this quant_method has not");
    const char* name = has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
    MatrixOfNumbers m{w.shape[0], w.shape[1]};
    INVAR_TRY(const Scales s, scales(name, m.rows, m.columns, {"F32", "BF16", "F16", "F8_E8M0"}));
    std::optional<Scales> zeros;
    if (has("weight_zero_point")) {
      INVAR_TRY(zeros, scales("weight_zero_point", m.rows, m.columns, {"I8"}));
      if (!integers) return wrong("weight_zero_point", "is there, which floats have not");
    }
    if (compressed) m.element = s.part.dtype == "F8_E8M0" ? "F32" : s.part.dtype;
    m.fill = [=, columns = m.columns](int64_t row, float* out) {
      for (int64_t k = 0; k < columns; ++k) {
        const uint8_t byte = w.bytes[row * columns + k];
        float q = integers ? static_cast<float>(static_cast<int8_t>(byte)) : PartOfMatrix::e4m3(byte);
        if (zeros) q -= static_cast<float>(static_cast<int8_t>(zeros->part.bytes[zeros->at(row, k)]));
        out[k] = q * s.part.number(s.at(row, k));
      }
    };
    return m;
  }

  Result<MatrixOfNumbers> packed_integers_or_fp4() {
    const auto t = checkpoint_.tensors.find(base_ + "weight_packed");
    if (t->second.dtype == "U8") return fp4("weight_packed", "weight_global_scale");
    return packed_integers();
  }

  // Integers of 4 or 8 bits in words, the first in the lowest bits.
  Result<MatrixOfNumbers> packed_integers() {
    INVAR_TRY(const PartOfMatrix w, part("weight_packed", {"I32"}));
    INVAR_TRY(const PartOfMatrix size, part("weight_shape", {"I64", "I32"}));
    const int64_t wide = size.dtype == "I64" ? 2 : 1;
    if (size.count() != 2) return wrong("weight_shape", "does not hold two sizes");
    MatrixOfNumbers m{size.word(0), size.word(wide)};
    const int64_t in_word = 32 / q_.bits, words = (m.columns + in_word - 1) / in_word;
    if (m.rows <= 0 || m.columns <= 0) return wrong("weight_shape", "holds a size of 0");
    INVAR_CHECK_OK(expect("weight_packed", w, {m.rows, words}));
    INVAR_TRY(Scales s, scales("weight_scale", m.rows, m.columns, {"F32", "BF16", "F16"}));
    const int64_t groups = s.across;
    std::optional<PartOfMatrix> zeros, order;
    if (has("weight_zero_point")) {
      INVAR_TRY(zeros, part("weight_zero_point", {"I32"}));
      INVAR_CHECK_OK(expect("weight_zero_point", *zeros, {(m.rows + in_word - 1) / in_word, groups}));
      if (s.rows != 1) return wrong("weight_zero_point", "is there beside scales of more than a row");
    }
    if (has("weight_g_idx")) {
      INVAR_TRY(order, column_groups("weight_g_idx", m.columns, groups));
    }
    m.element = s.part.dtype;
    m.fill = [=, bits = q_.bits, columns = m.columns](int64_t row, float* out) {
      const int middle = 1 << (bits - 1), mask = (1 << bits) - 1;
      for (int64_t k = 0; k < columns; ++k) {
        const int64_t group = order ? order->word(k) : s.at(row, k) % groups;
        int q = static_cast<int>(w.word(row * words + k / in_word) >> k % in_word * bits) & mask;
        const int z =
            zeros
                ? static_cast<int>(zeros->word(row / in_word * groups + group) >> row % in_word * bits) & mask
                : middle;
        out[k] = static_cast<float>(q - z) * s.part.number(s.rows == 1 ? row * groups + group : s.at(row, k));
      }
    };
    return m;
  }

  // The group of each column: a list of numbers below `groups`.
  Result<PartOfMatrix> column_groups(const std::string& name, int64_t columns, int64_t groups) {
    INVAR_TRY(const PartOfMatrix order, part(name, {"I32"}));
    INVAR_CHECK_OK(expect(name, order, {columns}));
    for (int64_t k = 0; k < columns; ++k)
      if (order.word(k) >= static_cast<uint64_t>(groups))
        return wrong(name, "names the group " + std::to_string(static_cast<int32_t>(order.word(k))) + " of " +
                               std::to_string(groups));
    return order;
  }

  // NVFP4: sixteen columns have a scale of FP8, and the matrix has another, by which it is divided
  // (compressed-tensors) or multiplied (ModelOpt).
  Result<MatrixOfNumbers> fp4(const std::string& packed, const std::string& whole) {
    INVAR_TRY(const PartOfMatrix w, part(packed, {"U8"}));
    if (w.shape.size() != 2) return wrong(packed, "is no matrix: " + onnx::shape_text(w.shape));
    MatrixOfNumbers m{w.shape[0], w.shape[1] * 2};
    INVAR_TRY(const PartOfMatrix s, part("weight_scale", {"F8_E4M3"}));
    INVAR_CHECK_OK(expect("weight_scale", s, {m.rows, m.columns / 16}));
    INVAR_TRY(const PartOfMatrix global, part(whole, {"F32"}));
    if (global.count() != 1) return wrong(whole, "is no single number");
    const bool divided = q_.by == PackedBy::compressed_tensors;
    if (divided) m.element = "BF16";
    m.fill = [=, g = global.number(0), columns = m.columns](int64_t row, float* out) {
      for (int64_t k = 0; k < columns; ++k) {
        const uint8_t pair = w.bytes[(row * columns + k) / 2];
        const float scale = s.number(row * (columns / 16) + k / 16);
        out[k] = kFp4[k % 2 ? pair >> 4 : pair & 15] * (divided ? scale / g : scale * g);
      }
    };
    return m;
  }

  // bitsandbytes: a number is one of sixteen of a table, times the scale of its block. The scales
  // may be such numbers themselves, of 256 and with an offset.
  Result<MatrixOfNumbers> four_bits_by_table() {
    std::string settings_name = "weight.quant_state.bitsandbytes__nf4";
    if (!has(settings_name)) settings_name.replace(settings_name.size() - 3, 3, "fp4");
    INVAR_TRY(const PartOfMatrix text, part(settings_name, {"U8"}));
    const json::Value settings =
        json::read_or_null({reinterpret_cast<const char*>(text.bytes), static_cast<size_t>(text.count())});
    const json::Value &shape = settings.get("shape"), &block = settings.get("blocksize");
    const json::Value &dtype = settings.get("dtype"), &nested = settings.get("nested_blocksize");
    const auto is_size = [](const json::Value& v) {
      return v.is_unsigned() && v.to_int64() > 0 && v.to_uint64() < 1u << 30;
    };
    const bool matrix =
        shape.is_array() && shape.size() == 2 && is_size(shape.items[0]) && is_size(shape.items[1]);
    if (!matrix || !is_size(block) || !(nested.is_null() || is_size(nested)))
      return wrong(settings_name, "does not hold the shape of a matrix and the size of a block");
    MatrixOfNumbers m{shape.items[0].to_int64(), shape.items[1].to_int64()};
    m.element = dtype == "bfloat16" ? "BF16" : dtype == "float16" ? "F16" : "F32";
    if (m.element == "F32" && dtype != "float32")
      return wrong(settings_name, "names another dtype than a float");
    const int64_t count = m.rows * m.columns, size = block.to_int64(), blocks = (count + size - 1) / size;
    INVAR_TRY(const PartOfMatrix w, part("weight", {"U8"}));
    if (w.count() != (count + 1) / 2)
      return wrong("weight", "has shape " + onnx::shape_text(w.shape) + ", but the matrix has " +
                                 std::to_string(count) + " numbers");
    INVAR_TRY(const PartOfMatrix table, part("weight.quant_map", {"F32"}));
    INVAR_CHECK_OK(expect("weight.quant_map", table, {16}));
    INVAR_TRY(const PartOfMatrix s, part("weight.absmax", {"F32", "U8"}));
    INVAR_CHECK_OK(expect("weight.absmax", s, {blocks}));
    std::optional<PartOfMatrix> outer, outer_table;
    const int64_t outer_size = nested.is_null() ? blocks : nested.to_int64();
    if (s.dtype == "U8") {
      INVAR_TRY(outer, part("weight.nested_absmax", {"F32"}));
      INVAR_CHECK_OK(expect("weight.nested_absmax", *outer, {(blocks + outer_size - 1) / outer_size}));
      INVAR_TRY(outer_table, part("weight.nested_quant_map", {"F32"}));
      INVAR_CHECK_OK(expect("weight.nested_quant_map", *outer_table, {256}));
    }
    const auto offset = static_cast<float>(settings.get("nested_offset").to_double());
    m.fill = [=, columns = m.columns](int64_t row, float* out) {
      for (int64_t k = 0; k < columns; ++k) {
        const int64_t i = row * columns + k, b = i / size;
        const int code = i % 2 ? w.bytes[i / 2] & 15 : w.bytes[i / 2] >> 4;
        const float scale =
            outer ? outer_table->number(s.bytes[b]) * outer->number(b / outer_size) + offset : s.number(b);
        out[k] = table.number(code) * scale;
      }
    };
    return m;
  }

  // Words along the columns of a matrix that is stored [in, out].
  Result<MatrixOfNumbers> gptq() {
    const int64_t in_word = 32 / q_.bits;
    INVAR_TRY(const PartOfMatrix w, part("qweight", {"I32"}));
    if (w.shape.size() != 2) return wrong("qweight", "is no matrix: " + onnx::shape_text(w.shape));
    const int64_t out_size = w.shape[1];
    MatrixOfNumbers m{out_size, w.shape[0] * in_word};
    const int64_t group = q_.group ? q_.group : m.columns, groups = (m.columns + group - 1) / group;
    INVAR_TRY(const PartOfMatrix s, part("scales", {"F16", "BF16", "F32"}));
    INVAR_CHECK_OK(expect("scales", s, {groups, out_size}));
    INVAR_TRY(const PartOfMatrix zeros, part("qzeros", {"I32"}));
    INVAR_CHECK_OK(expect("qzeros", zeros, {groups, (out_size + in_word - 1) / in_word}));
    std::optional<PartOfMatrix> order;
    if (has("g_idx")) {
      INVAR_TRY(order, column_groups("g_idx", m.columns, groups));
    }
    const int bits = q_.bits, mask = (1 << bits) - 1, less = q_.zeros_are_less ? 1 : 0;
    const auto zero = [=](int64_t g, int64_t row) {
      return static_cast<int>(zeros.word(g * zeros.shape[1] + row / in_word) >> row % in_word * bits) & mask;
    };
    for (int64_t g = 0; g < groups && less; ++g)
      for (int64_t row = 0; row < out_size; ++row)
        if (zero(g, row) == mask)
          return not_covered(checkpoint_.folder + ": tensor " + quote(base_ + "qzeros") + " has a zero of " +
                             std::to_string(mask) + ", of which programs make 0 or " +
                             std::to_string(mask + 1) +
                             ": not covered; save the model with checkpoint_format gptq_v2");
    m.fill = [=, columns = m.columns](int64_t row, float* out) {
      for (int64_t k = 0; k < columns; ++k) {
        const int64_t g = order ? order->word(k) : k / group;
        const int q = static_cast<int>(w.word(k / in_word * out_size + row) >> k % in_word * bits) & mask;
        out[k] = static_cast<float>(q - zero(g, row) - less) * s.number(g * out_size + row);
      }
    };
    return m;
  }

  // Words along the rows of a matrix that is stored [in, out], the halves in another order.
  Result<MatrixOfNumbers> awq() {
    INVAR_TRY(const PartOfMatrix w, part("qweight", {"I32"}));
    if (w.shape.size() != 2) return wrong("qweight", "is no matrix: " + onnx::shape_text(w.shape));
    const int64_t words = w.shape[1];
    MatrixOfNumbers m{words * 8, w.shape[0]};
    const int64_t group = q_.group ? q_.group : m.columns, groups = (m.columns + group - 1) / group;
    INVAR_TRY(const PartOfMatrix s, part("scales", {"F16", "BF16", "F32"}));
    INVAR_CHECK_OK(expect("scales", s, {groups, m.rows}));
    INVAR_TRY(const PartOfMatrix zeros, part("qzeros", {"I32"}));
    INVAR_CHECK_OK(expect("qzeros", zeros, {groups, words}));
    m.fill = [=, columns = m.columns, rows = m.rows](int64_t row, float* out) {
      const int shift = 4 * kAwqHalf[row % 8];
      for (int64_t k = 0; k < columns; ++k) {
        const int64_t g = k / group;
        const int q = static_cast<int>(w.word(k * words + row / 8) >> shift) & 15;
        const int z = static_cast<int>(zeros.word(g * words + row / 8) >> shift) & 15;
        out[k] = static_cast<float>(q - z) * s.number(g * rows + row);
      }
    };
    return m;
  }

  // Puts NAME.weight into the place of the parts that were read.
  Status take(MatrixOfNumbers m) {
    for (const std::string& name : used_) checkpoint_.tensors.erase(name);
    const std::string name = base_ + "weight", where = checkpoint_.folder + ": tensor " + quote(name);
    if (checkpoint_.tensors.contains(name)) return bad_input(where + " is there beside its packed form");
    const size_t width = weights::element_bytes(m.element);
    const uint64_t bytes = static_cast<uint64_t>(m.rows) * static_cast<uint64_t>(m.columns) * width;
    add_made(checkpoint_, name, m.element, {m.rows, m.columns}, bytes,
             [m, where, width, kept = kept_](const EmitBytes& emit) -> Status {
               std::vector<float> numbers(static_cast<size_t>(m.columns));
               std::vector<uint8_t> row(numbers.size() * width);
               for (int64_t r = 0; r < m.rows; ++r) {
                 m.fill(r, numbers.data());
                 for (size_t k = 0; k < numbers.size(); ++k) {
                   const uint32_t bits = bits_of_element(m.element, numbers[k]);
                   if (bits == kNotFinite)
                     return bad_input(
                         where + ": row " + std::to_string(r) +
                         " has a number that is infinite or none: the file is damaged or was made wrongly");
                   for (size_t b = 0; b < width; ++b)
                     row[k * width + b] = static_cast<uint8_t>(bits >> 8 * b);
                 }
                 INVAR_CHECK_OK(emit(row));
               }
               return {};
             });
    used_.clear(), kept_.clear();
    return {};
  }

  Checkpoint& checkpoint_;
  const Quantization& q_;
  std::string base_;
  std::vector<std::string> used_;
  std::vector<std::shared_ptr<const MappedFile>> kept_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace

Status replace_packed(Checkpoint& checkpoint, const Quantization& quantization) {
  if (quantization.by == PackedBy::nothing) return {};
  return PackedReader(checkpoint, quantization).run();
}

}  // namespace invar::checkpoint
