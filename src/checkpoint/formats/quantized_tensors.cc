// The tensors of packed matrices -> those of their numbers.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/file/file.h"
#include "base/text/json.h"
#include "checkpoint/folder.h"
#include "checkpoint/formats/quantization.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"
#include "weights/packed_matrix.h"

namespace invar::checkpoint {
namespace {

using onnx::quote;

using weights::CodeKind;
using weights::CodeOrder;
using weights::PackedMatrix;
using weights::PartOf;
using weights::Rounding;

// A part of a matrix and its shape.
struct StoredPart : weights::MatrixPart {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }
};

Rounding rounding_to(std::string_view dtype) {
  return dtype == "BF16" ? Rounding::bf16 : dtype == "F16" ? Rounding::f16 : Rounding::none;
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
      std::optional<Result<PackedMatrix>> made;
      if (integers && end == "qweight") made = q_.by == PackedBy::gptq ? gptq() : awq();
      if (!integers && end == "weight_packed") made = packed_integers_or_fp4();
      const bool bytes = t.dtype == "F8_E4M3" || t.dtype == "F8_E5M2" || t.dtype == "I8";
      if (!integers && end == "weight" && bytes)
        made = q_.by == PackedBy::bitsandbytes ? rows_of_127() : scaled();
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
  Error wrong(const std::string& part, const std::string& what) const {
    return bad_input(checkpoint_.folder + ": tensor " + quote(base_ + part) + " " + what);
  }

  // The part with this name, which is then no tensor of the model.
  Result<StoredPart> part(const std::string& name, std::initializer_list<std::string_view> dtypes) {
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
    StoredPart part;
    part.dtype = t.dtype, part.shape = t.shape, part.type = *weights::part_type(t.dtype);
    part.file = t.file, part.at = t.offset, part.length = t.length;
    part.bytes = reinterpret_cast<const uint8_t*>(file->bytes().data()) + t.offset;
    return part;
  }
  bool has(const std::string& name) const { return checkpoint_.tensors.contains(base_ + name); }

  Status expect(const std::string& name, const StoredPart& p, std::vector<int64_t> shape) const {
    if (p.shape == shape) return {};
    return wrong(name, "has shape " + onnx::shape_text(p.shape) + ", but the matrix asks for " +
                           onnx::shape_text(shape));
  }

  Status is_matrix(const std::string& name, const StoredPart& p) const {
    if (p.shape.size() == 2 && p.shape[0] > 0 && p.shape[1] > 0) return {};
    return wrong(name, "is no matrix: " + onnx::shape_text(p.shape));
  }

  // Scales of a matrix: one, one a row, or one a block or group. Says how many numbers have one.
  Result<StoredPart> scales(const std::string& name, PackedMatrix& m,
                            std::initializer_list<std::string_view> dtypes) {
    INVAR_TRY(const StoredPart s, part(name, dtypes));
    const int64_t count = s.count();
    if (q_.block_rows && s.shape.size() == 2) {
      m.scale_rows = q_.block_rows, m.scale_columns = q_.block_columns;
    } else if (count == 1) {
      m.scale_rows = m.rows, m.scale_columns = m.columns;
    } else if (count == m.rows && (s.shape.size() == 1 || s.shape.back() == 1)) {
      m.scale_rows = 1, m.scale_columns = m.columns;
    } else if (s.shape.size() == 2 && q_.group) {
      m.scale_rows = 1, m.scale_columns = q_.group;
    } else {
      return wrong(name, "has shape " + onnx::shape_text(s.shape) +
                             ", which is neither one scale, nor one a row, nor "
                             "one a group or block of quantization_config");
    }
    const int64_t down = (m.rows + m.scale_rows - 1) / m.scale_rows;
    if (count != down * m.across() || (down * m.across() > 1 && s.shape.size() == 2 && s.shape[0] != down))
      return wrong(name, "has shape " + onnx::shape_text(s.shape) + ", but the matrix asks for " +
                             onnx::shape_text(std::vector{down, m.across()}));
    return s;
  }

  // FP8 or eight bits of integers, a byte each.
  Result<PackedMatrix> scaled() {
    INVAR_TRY(const StoredPart w, part("weight", {"F8_E4M3", "F8_E5M2", "I8"}));
    INVAR_CHECK_OK(is_matrix("weight", w));
    const bool compressed = q_.by == PackedBy::compressed_tensors, integers = w.dtype == "I8";
    if (integers && !compressed) return wrong("weight", "is stored as I8, which this quant_method has not");
    const char* name = has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
    PackedMatrix m{w.shape[0], w.shape[1]};
    m.kind = integers ? CodeKind::signed_integer : w.dtype == "F8_E5M2" ? CodeKind::e5m2 : CodeKind::e4m3;
    m.row_bytes = m.columns, m.zero = integers ? 128 : 0;
    m.parts[weights::kCodes] = w;
    INVAR_TRY(const StoredPart s, scales(name, m, {"F32", "BF16", "F16", "F8_E8M0"}));
    m.parts[weights::kScales] = s;
    if (has("weight_zero_point")) {
      PackedMatrix same = m;
      INVAR_TRY(m.parts[weights::kZeros], scales("weight_zero_point", same, {"I8"}));
      if (same.scale_rows != m.scale_rows || same.scale_columns != m.scale_columns)
        return wrong("weight_zero_point", "has another shape than the scales");
      if (!integers) return wrong("weight_zero_point", "is there, which floats have not");
    }
    if (compressed) m.rounding = rounding_to(s.dtype);
    return m;
  }

  Result<PackedMatrix> packed_integers_or_fp4() {
    const auto t = checkpoint_.tensors.find(base_ + "weight_packed");
    if (t->second.dtype == "U8") return fp4("weight_packed", "weight_global_scale");
    return packed_integers();
  }

  // Integers of 4 or 8 bits in words, the first in the lowest bits.
  Result<PackedMatrix> packed_integers() {
    INVAR_TRY(const StoredPart w, part("weight_packed", {"I32"}));
    INVAR_TRY(const StoredPart size, part("weight_shape", {"I64", "I32"}));
    if (size.count() != 2) return wrong("weight_shape", "does not hold two sizes");
    PackedMatrix m{size.integer(0), size.integer(1)};
    const int64_t in_word = 32 / q_.bits, words = (m.columns + in_word - 1) / in_word;
    if (m.rows <= 0 || m.columns <= 0) return wrong("weight_shape", "holds a size of 0");
    INVAR_CHECK_OK(expect("weight_packed", w, {m.rows, words}));
    m.bits = q_.bits, m.row_bytes = 4 * words, m.zero = 1 << (q_.bits - 1);
    m.parts[weights::kCodes] = w;
    INVAR_TRY(const StoredPart s, scales("weight_scale", m, {"F32", "BF16", "F16"}));
    m.parts[weights::kScales] = s;
    if (has("weight_zero_point")) {
      INVAR_TRY(const StoredPart zeros, part("weight_zero_point", {"I32"}));
      INVAR_CHECK_OK(expect("weight_zero_point", zeros, {(m.rows + in_word - 1) / in_word, m.across()}));
      if (m.scale_rows != 1) return wrong("weight_zero_point", "is there beside scales of more than a row");
      m.parts[weights::kZeros] = zeros;
    }
    if (has("weight_g_idx")) {
      INVAR_CHECK_OK(column_groups("weight_g_idx", m));
    }
    m.rounding = rounding_to(s.dtype);
    return m;
  }

  // The group of each column: a list of numbers below that of groups. It is no part of the matrix
  // where it says what the size of a group says.
  Status column_groups(const std::string& name, PackedMatrix& m) {
    INVAR_TRY(const StoredPart order, part(name, {"I32"}));
    INVAR_CHECK_OK(expect(name, order, {m.columns}));
    bool as_they_lie = true;
    for (int64_t k = 0; k < m.columns; ++k) {
      if (order.word(k) >= static_cast<uint64_t>(m.across()))
        return wrong(name, "names the group " + std::to_string(order.integer(k)) + " of " +
                               std::to_string(m.across()));
      as_they_lie = as_they_lie && order.word(k) == static_cast<uint64_t>(k / m.scale_columns);
    }
    if (!as_they_lie) m.parts[weights::kColumnGroups] = order;
    return {};
  }

  // NVFP4: sixteen columns have a scale of FP8, and the matrix has another, by which it is divided
  // (compressed-tensors) or multiplied (ModelOpt).
  Result<PackedMatrix> fp4(const std::string& packed, const std::string& whole) {
    INVAR_TRY(const StoredPart w, part(packed, {"U8"}));
    INVAR_CHECK_OK(is_matrix(packed, w));
    PackedMatrix m{w.shape[0], w.shape[1] * 2};
    m.kind = CodeKind::e2m1, m.bits = 4, m.row_bytes = w.shape[1], m.scale_columns = 16;
    m.parts[weights::kCodes] = w;
    if (q_.scales_are_powers) return powers_of_two(std::move(m));
    INVAR_TRY(const StoredPart s, part("weight_scale", {"F8_E4M3"}));
    INVAR_CHECK_OK(expect("weight_scale", s, {m.rows, m.columns / 16}));
    INVAR_TRY(const StoredPart global, part(whole, {"F32"}));
    if (global.count() != 1) return wrong(whole, "is no single number");
    m.parts[weights::kScales] = s, m.parts[weights::kWhole] = global;
    m.divided = q_.by == PackedBy::compressed_tensors;
    if (m.divided) m.rounding = Rounding::bf16;
    return m;
  }

  // MXFP4 of compressed-tensors: 32 columns have a power of two.
  Result<PackedMatrix> powers_of_two(PackedMatrix m) {
    m.scale_columns = 32, m.rounding = Rounding::bf16;
    INVAR_TRY(StoredPart s, part("weight_scale", {"U8", "F8_E8M0"}));
    INVAR_CHECK_OK(expect("weight_scale", s, {m.rows, m.across()}));
    s.type = weights::PartType::e8m0;
    m.parts[weights::kScales] = s;
    return m;
  }

  // bitsandbytes of eight bits: (weight * SCB) * c, where c is 1 / 127 in binary32.
  Result<PackedMatrix> rows_of_127() {
    INVAR_TRY(const StoredPart w, part("weight", {"I8"}));
    INVAR_CHECK_OK(is_matrix("weight", w));
    PackedMatrix m{w.shape[0], w.shape[1]};
    m.kind = CodeKind::signed_integer, m.row_bytes = m.columns, m.zero = 128, m.factor = 1.0f / 127;
    INVAR_TRY(const StoredPart s, part("SCB", {"F32"}));
    INVAR_CHECK_OK(expect("SCB", s, {m.rows}));
    m.scale_columns = m.columns;
    m.parts[weights::kCodes] = w, m.parts[weights::kScales] = s;
    if (has("weight_format")) {
      INVAR_CHECK_OK(part("weight_format", {"U8"}));
    }
    return m;
  }

  // bitsandbytes: a number is one of sixteen of a table, times the scale of its block. The scales
  // may be such numbers themselves, of 256 and with an offset.
  Result<PackedMatrix> four_bits_by_table() {
    std::string settings_name = "weight.quant_state.bitsandbytes__nf4";
    if (!has(settings_name)) settings_name.replace(settings_name.size() - 3, 3, "fp4");
    INVAR_TRY(const StoredPart text, part(settings_name, {"U8"}));
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
    PackedMatrix m{shape.items[0].to_int64(), shape.items[1].to_int64()};
    m.kind = CodeKind::of_table, m.order = CodeOrder::high_first, m.bits = 4;
    m.rounding = dtype == "bfloat16" ? Rounding::bf16 : dtype == "float16" ? Rounding::f16 : Rounding::none;
    if (m.rounding == Rounding::none && dtype != "float32")
      return wrong(settings_name, "names another dtype than a float");
    m.scale_columns = block.to_int64();
    const int64_t count = m.rows * m.columns, blocks = (count + m.scale_columns - 1) / m.scale_columns;
    INVAR_TRY(const StoredPart w, part("weight", {"U8"}));
    if (w.count() != (count + 1) / 2)
      return wrong("weight", "has shape " + onnx::shape_text(w.shape) + ", but the matrix has " +
                                 std::to_string(count) + " numbers");
    INVAR_TRY(const StoredPart table, part("weight.quant_map", {"F32"}));
    INVAR_CHECK_OK(expect("weight.quant_map", table, {16}));
    INVAR_TRY(const StoredPart s, part("weight.absmax", {"F32", "U8"}));
    INVAR_CHECK_OK(expect("weight.absmax", s, {blocks}));
    m.parts[weights::kCodes] = w, m.parts[weights::kTable] = table, m.parts[weights::kScales] = s;
    if (s.dtype == "U8") {
      m.outer_scales = nested.is_null() ? blocks : nested.to_int64();
      INVAR_TRY(const StoredPart outer, part("weight.nested_absmax", {"F32"}));
      INVAR_CHECK_OK(expect("weight.nested_absmax", outer, {(blocks + m.outer_scales - 1) / m.outer_scales}));
      INVAR_TRY(const StoredPart outer_table, part("weight.nested_quant_map", {"F32"}));
      INVAR_CHECK_OK(expect("weight.nested_quant_map", outer_table, {256}));
      m.parts[weights::kOuterScales] = outer, m.parts[weights::kOuterTable] = outer_table;
      m.offset = static_cast<float>(settings.get("nested_offset").to_double());
    }
    return m;
  }

  // Words along the columns of a matrix that is stored [in, out].
  Result<PackedMatrix> gptq() {
    const int64_t in_word = 32 / q_.bits;
    INVAR_TRY(const StoredPart w, part("qweight", {"I32"}));
    INVAR_CHECK_OK(is_matrix("qweight", w));
    PackedMatrix m{w.shape[1], w.shape[0] * in_word};
    m.order = CodeOrder::gptq, m.bits = q_.bits, m.zero_more = q_.zeros_are_less ? 1 : 0;
    INVAR_CHECK_OK(groups_of_columns(m, w, (m.rows + in_word - 1) / in_word));
    if (has("g_idx")) {
      INVAR_CHECK_OK(column_groups("g_idx", m));
    }
    const weights::MatrixPart& zeros = m.parts[weights::kZeros];
    const uint32_t mask = (1u << q_.bits) - 1;
    for (int64_t g = 0; g < m.across() && m.zero_more; ++g)
      for (int64_t row = 0; row < m.rows; ++row) {
        const uint32_t word = zeros.word(g * ((m.rows + in_word - 1) / in_word) + row / in_word);
        if ((word >> row % in_word * q_.bits & mask) == mask)
          return not_covered(checkpoint_.folder + ": tensor " + quote(base_ + "qzeros") + " has a zero of " +
                             std::to_string(mask) + ", of which programs make 0 or " +
                             std::to_string(mask + 1) +
                             ": not covered; save the model with checkpoint_format gptq_v2");
      }
    return m;
  }

  // Words along the rows of a matrix that is stored [in, out], the halves in another order.
  Result<PackedMatrix> awq() {
    INVAR_TRY(const StoredPart w, part("qweight", {"I32"}));
    INVAR_CHECK_OK(is_matrix("qweight", w));
    PackedMatrix m{w.shape[1] * 8, w.shape[0]};
    m.order = CodeOrder::awq, m.bits = 4;
    INVAR_CHECK_OK(groups_of_columns(m, w, w.shape[1]));
    return m;
  }

  // The parts that GPTQ and AWQ have in common: a scale and a zero for a group of columns.
  Status groups_of_columns(PackedMatrix& m, const StoredPart& codes, int64_t words_of_zeros) {
    m.scale_columns = q_.group ? q_.group : std::max<int64_t>(m.columns, 1);
    INVAR_TRY(const StoredPart s, part("scales", {"F16", "BF16", "F32"}));
    INVAR_CHECK_OK(expect("scales", s, {m.across(), m.rows}));
    INVAR_TRY(const StoredPart zeros, part("qzeros", {"I32"}));
    INVAR_CHECK_OK(expect("qzeros", zeros, {m.across(), words_of_zeros}));
    m.parts[weights::kCodes] = codes, m.parts[weights::kScales] = s, m.parts[weights::kZeros] = zeros;
    return {};
  }

  // Puts NAME.weight into the place of the parts that were read.
  Status take(PackedMatrix m) {
    for (const std::string& name : used_) checkpoint_.tensors.erase(name);
    const std::string name = base_ + "weight", where = checkpoint_.folder + ": tensor " + quote(name);
    if (checkpoint_.tensors.contains(name)) return bad_input(where + " is there beside its packed form");
    std::vector<int64_t> shape{m.rows, m.columns};
    add_made(checkpoint_, name, std::move(shape), std::move(m), kept_);
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
