// The tensors of a GGUF file as those of a checkpoint (spec/weights.md weights.13, weights.14).
#include <algorithm>
#include <bit>
#include <filesystem>
#include <memory>

#include "checkpoint/gguf/gguf_model.h"
#include "num/convert/convert.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"
#include "weights/formats.h"

namespace invar::checkpoint {
namespace {

// The row of the file that is row r of the family's tensor. llama.cpp has the two halves of a head
// in turns.
int64_t stored_row(int64_t r, int64_t rows, int64_t heads) {
  if (heads == 0) return r;
  const int64_t size = rows / heads, head = r / size, at = r % size;
  return head * size + (at % (size / 2)) * 2 + at / (size / 2);
}

struct RowsOfTensor {
  const uint8_t* bytes = nullptr;  // of the whole or of one expert
  const weights::Format* format = nullptr;
  int64_t rows = 1, numbers = 1;  // in a row
  int64_t heads = 0;
  std::vector<int64_t> order = {};  // GgufSource::row_order
  std::string where = {};

  // All rows as elements of the format's type.
  Result<std::vector<uint8_t>> elements() const {
    const size_t width = weights::element_bytes(format->element);
    const size_t stored = static_cast<size_t>(numbers / format->block * format->bytes);
    std::vector<uint8_t> all(static_cast<size_t>(rows * numbers) * width);
    for (int64_t r = 0; r < rows; ++r)
      if (!weights::unpack_row(*format, bytes + static_cast<size_t>(r) * stored, numbers,
                               all.data() + static_cast<size_t>(r * numbers) * width))
        return not_finite(r);
    return all;
  }
  Error not_finite(int64_t row) const {
    return bad_input(where + ": row " + std::to_string(row) +
                     " has a number that is infinite or none, as its " +
                     "scale is: the file is damaged or was made wrongly");
  }

  Status write(const EmitBytes& emit) const {
    constexpr size_t kBatch = size_t{1} << 20;
    const size_t stored = static_cast<size_t>(numbers / format->block * format->bytes);
    const size_t made = static_cast<size_t>(numbers) * weights::element_bytes(format->element);
    std::vector<uint8_t> buffer(std::max<size_t>(1, kBatch / std::max<size_t>(made, 1)) * made);
    size_t filled = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = order.empty() ? stored_row(r, rows, heads) : order[static_cast<size_t>(r)];
      const uint8_t* row = bytes + static_cast<size_t>(at) * stored;
      if (!weights::unpack_row(*format, row, numbers, buffer.data() + filled)) return not_finite(r);
      filled += made;
      if (filled < buffer.size() && r + 1 < rows) continue;
      INVAR_CHECK_OK(emit({buffer.data(), filled}));
      filled = 0;
    }
    return {};
  }
};

// The rows of a source, in the mapped file.
Result<RowsOfTensor> rows_of(const Gguf& g, const GgufSource& source, const std::string& where) {
  const GgufTensor& t = *source.tensor;
  RowsOfTensor rows;
  rows.where = where;
  rows.format = weights::find_format(t.type);
  if (!rows.format) {
    const std::string_view name = weights::unread_type(t.type);
    return not_covered(
        where + " is stored as " + (name.empty() ? "type " + std::to_string(t.type) : std::string(name)) +
        ", which is not covered (docs/reference/weight-formats.md has those that are): take the "
        "model in another quantisation, such as Q4_K_M, or the checkpoint it was made of");
  }
  rows.heads = source.heads, rows.order = source.row_order;
  const bool is_list = source.heads && source.shape.size() == 1;  // each row has one number
  if (is_list && rows.format->block != 1)
    return not_covered(where + " is a list of numbers in " + rows.format->name + ", which is not covered");
  rows.numbers = is_list ? 1 : source.shape.back();
  for (size_t i = 0; i + (is_list ? 0 : 1) < source.shape.size(); ++i) rows.rows *= source.shape[i];
  rows.bytes =
      reinterpret_cast<const uint8_t*>(g.maps[static_cast<size_t>(t.file)].bytes().data()) + t.offset;
  if (source.expert >= 0)
    rows.bytes += static_cast<uint64_t>(source.expert) * (t.length / static_cast<uint64_t>(t.shape[0]));
  return rows;
}

// Stacks of matrices [out, in] -> [in, out], expert by expert; of two stacks the columns in turns.
// A list of numbers is a matrix whose rows have one.
Status write_turned(const std::vector<RowsOfTensor>& stacks, int64_t experts, const EmitBytes& emit) {
  const RowsOfTensor& first = stacks[0];
  const size_t width = weights::element_bytes(first.format->element), count = stacks.size();
  const int64_t rows = first.rows / experts;
  const size_t stored = static_cast<size_t>(first.numbers / first.format->block * first.format->bytes);
  std::vector<uint8_t> out(static_cast<size_t>(rows * first.numbers) * width * count);
  for (int64_t e = 0; e < experts; ++e) {
    for (size_t s = 0; s < count; ++s) {
      RowsOfTensor one = stacks[s];
      one.rows = rows, one.bytes += static_cast<size_t>(e * rows) * stored;
      INVAR_TRY(const std::vector<uint8_t> elements, one.elements());
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < one.numbers; ++k) {
          const size_t to = (static_cast<size_t>(k * rows + r) * count + s) * width;
          std::copy_n(elements.data() + static_cast<size_t>(r * one.numbers + k) * width, width,
                      out.data() + to);
        }
    }
    INVAR_CHECK_OK(emit(out));
  }
  return {};
}

// Keys [heads, rank, size] and values [heads, size, rank] -> of each head the keys [size, rank] and
// the values behind them, all as binary32 where their types differ.
Status write_latent_heads(const RowsOfTensor& keys, const RowsOfTensor& values, int64_t heads,
                          const std::string& element, const EmitBytes& emit) {
  const auto widened = [&](const RowsOfTensor& rows, int64_t head) -> Result<std::vector<uint8_t>> {
    RowsOfTensor one = rows;
    one.rows = rows.rows / heads;
    const int64_t stored = rows.numbers / rows.format->block * rows.format->bytes;
    one.bytes += static_cast<size_t>(head * one.rows * stored);
    INVAR_TRY(std::vector<uint8_t> all, one.elements());
    if (rows.format->element == element) return all;
    const bool bf16 = rows.format->element == std::string_view("BF16");
    std::vector<uint8_t> wide(all.size() * 2);
    for (size_t i = 0; i < all.size(); i += 2) {
      const auto half = static_cast<uint16_t>(all[i] | all[i + 1] << 8);
      const auto bits = std::bit_cast<uint32_t>(bf16 ? num::f32_from_bf16(half) : num::f32_from_f16(half));
      for (size_t b = 0; b < 4; ++b) wide[2 * i + b] = static_cast<uint8_t>(bits >> 8 * b);
    }
    return wide;
  };
  const size_t width = weights::element_bytes(element);
  const auto rank = static_cast<size_t>(values.numbers), size = static_cast<size_t>(keys.numbers);
  for (int64_t h = 0; h < heads; ++h) {
    INVAR_TRY(const std::vector<uint8_t> turned, widened(keys, h));
    INVAR_TRY(const std::vector<uint8_t> second, widened(values, h));
    std::vector<uint8_t> first(turned.size());
    for (size_t r = 0; r < rank; ++r)
      for (size_t k = 0; k < size; ++k)
        std::copy_n(turned.data() + (r * size + k) * width, width, first.data() + (k * rank + r) * width);
    INVAR_CHECK_OK(emit(first));
    INVAR_CHECK_OK(emit(second));
  }
  return {};
}

// Where the blocks of stacks lie whose rows are the columns of the tensor.
weights::PackedTensor in_turns(const Gguf& g, const std::vector<RowsOfTensor>& stacks,
                               const GgufSource& source, int64_t experts) {
  const auto place = [&](const GgufTensor& t) { return g.files[static_cast<size_t>(t.file)]; };
  weights::PackedTensor p;
  p.format = stacks[0].format->name, p.name = source.stored;
  p.file = place(*source.tensor), p.at = source.tensor->offset;
  p.rows = stacks[0].rows * static_cast<int64_t>(stacks.size()), p.numbers = stacks[0].numbers;
  p.matrices = experts;
  if (source.second) p.second_file = place(*source.second), p.second_at = source.second->offset;
  return p;
}

}  // namespace

Result<Checkpoint> gguf_checkpoint(const std::string& folder, Gguf opened) {
  Checkpoint out;
  out.folder = folder;
  const auto kept = std::make_shared<const Gguf>(std::move(opened));  // while tensors are written
  INVAR_TRY(const auto sources, gguf_sources(*kept));
  for (const auto& [name, source] : sources) {
    const std::string& file = kept->files[static_cast<size_t>(source.tensor->file)];
    // The folder may be one of a cache that links to the file.
    std::error_code error;
    const std::string path = std::filesystem::canonical(folder + "/" + file, error).string();
    INVAR_TRY(RowsOfTensor rows, rows_of(*kept, source, path + ": tensor " + onnx::quote(source.stored)));
    if (source.turned) {
      const int64_t experts = source.tensor->shape[0];
      std::vector<RowsOfTensor> stacks;
      for (const GgufTensor* t : {source.tensor, source.second}) {
        if (!t) continue;
        GgufSource whole = source;
        whole.tensor = t, whole.shape = t->shape;
        INVAR_TRY(RowsOfTensor stack, rows_of(*kept, whole, path + ": tensor " + onnx::quote(source.stored)));
        if (t->shape.size() == 2 && stack.format->block == 1) stack.rows *= stack.numbers, stack.numbers = 1;
        stacks.push_back(std::move(stack));
      }
      const std::string element = rows.format->element;
      add_made(
          out, name, element, source.shape,
          static_cast<uint64_t>(stacks[0].rows * stacks[0].numbers) * stacks.size() *
              weights::element_bytes(element),
          [stacks, experts, kept](const EmitBytes& emit) { return write_turned(stacks, experts, emit); });
      if (rows.format->coding) out.made.back().packed = in_turns(*kept, stacks, source, experts);
      continue;
    }
    if (source.latent_heads) {
      std::vector<RowsOfTensor> parts;
      for (const GgufTensor* t : {source.tensor, source.second}) {
        GgufSource part = source;
        part.tensor = t, part.shape = t->shape;
        INVAR_TRY(RowsOfTensor one, rows_of(*kept, part, path + ": tensor " + onnx::quote(source.stored)));
        parts.push_back(std::move(one));
      }
      const std::string first = parts[0].format->element;
      const std::string element = first == parts[1].format->element ? first : "F32";
      const int64_t heads = source.tensor->shape[0];
      add_made(out, name, element, source.shape,
               static_cast<uint64_t>(source.shape[0] * source.shape[1]) * weights::element_bytes(element),
               [parts, heads, element, kept](const EmitBytes& emit) {
                 return write_latent_heads(parts[0], parts[1], heads, element, emit);
               });
      continue;
    }
    const std::byte* const bytes = kept->maps[static_cast<size_t>(source.tensor->file)].bytes().data();
    const uint64_t numbers = static_cast<uint64_t>(rows.rows) * static_cast<uint64_t>(rows.numbers);
    if (rows.format->unpack || rows.heads || !rows.order.empty()) {
      add_made(out, name, rows.format->element, source.shape,
               numbers * weights::element_bytes(rows.format->element),
               [rows, kept](const EmitBytes& emit) { return rows.write(emit); });
      if (rows.format->unpack && rows.order.empty())
        out.made.back().packed = {
            0,
            0,
            rows.format->name,
            file,
            static_cast<uint64_t>(reinterpret_cast<const std::byte*>(rows.bytes) - bytes),
            rows.rows,
            rows.numbers,
            rows.heads ? rows.rows / rows.heads : 0,
            source.stored};
      continue;
    }
    CheckpointTensor t;
    t.dtype = rows.format->element;
    t.shape = source.shape;
    t.file = file;
    t.offset = static_cast<uint64_t>(reinterpret_cast<const std::byte*>(rows.bytes) - bytes);
    t.length = numbers * weights::element_bytes(t.dtype);
    out.tensors[name] = std::move(t);
  }
  out.files = kept->files;
  return out;
}

}  // namespace invar::checkpoint
