#include "checkpoint/files/mxfp4.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/file/write_files.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

constexpr int64_t kBlock = 32, kBlockBytes = kBlock / 2;  // elements that share a scale; their bytes
constexpr const char *kBlocks = "_blocks", *kScales = "_scales";

// Whether bf16 holds the element with the four bits `code` (sign, two of exponent, one of mantissa)
// times 2^(scale - 127), as a normal number or 0. With exponent bits e > 0 the value is 2^(e - 1)
// (1 + m / 2), else m / 2.
bool bf16_holds(int code, int scale) {
  const int e = code >> 1 & 3, exponent = e ? scale + e - 1 : scale - 1;  // biased by 127, as in bf16
  return (code & 7) == 0 || (scale != 0 && exponent >= 1 && exponent <= 254);
}

bool bf16_holds_all(const weights::MatrixPart& blocks, const weights::MatrixPart& scales) {
  for (uint64_t b = 0; b < scales.length; ++b) {
    const int scale = scales.bytes[b];
    if (scale >= 2 && scale <= 252) continue;
    for (int64_t i = 0; i < kBlockBytes; ++i) {
      const int pair = blocks.bytes[static_cast<int64_t>(b) * kBlockBytes + i];
      if (scale == 255 || !bf16_holds(pair & 15, scale) || !bf16_holds(pair >> 4, scale)) return false;
    }
  }
  return true;
}

// The files of a checkpoint, each mapped once.
class Maps {
 public:
  explicit Maps(std::string folder) : folder_(std::move(folder)) {}
  Result<weights::MatrixPart> part(const CheckpointTensor& t, weights::PartType type) {
    auto& map = maps_[t.file];
    if (!map) {
      INVAR_TRY(MappedFile opened, MappedFile::open(folder_ + "/" + t.file));
      map = std::make_shared<const MappedFile>(std::move(opened));
    }
    const auto all = map->bytes();
    if (t.offset + t.length > all.size())
      return bad_input(folder_ + "/" + t.file + ": changed while it was read");
    return weights::MatrixPart{type, t.offset, t.length, t.file,
                               reinterpret_cast<const uint8_t*>(all.data()) + t.offset};
  }
  std::vector<std::shared_ptr<const MappedFile>> all() const {
    std::vector<std::shared_ptr<const MappedFile>> maps;
    for (const auto& [name, map] : maps_) maps.push_back(map);
    return maps;
  }

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> maps_;
};

}  // namespace

Status replace_mxfp4(Checkpoint& checkpoint) {
  Maps maps(checkpoint.folder);
  const auto tensors = checkpoint.tensors;
  for (const auto& [name, blocks] : tensors) {
    if (!name.ends_with(kBlocks)) continue;
    const std::string base = name.substr(0, name.size() - std::strlen(kBlocks));
    const std::string where = checkpoint.folder + "/" + blocks.file + ": tensor " + onnx::quote(name);
    const auto scales = tensors.find(base + kScales);
    std::vector<int64_t> shape = blocks.shape;
    if (blocks.dtype != "U8" || shape.size() != 4 || shape[3] != kBlockBytes)
      return bad_input(where + " is no U8 [experts, out, groups, 16]");
    shape.pop_back();
    if (scales == tensors.end() || scales->second.dtype != "U8" || scales->second.shape != shape)
      return bad_input(where + " has no " + onnx::quote(base + kScales) + ", U8 " + onnx::shape_text(shape));
    if (tensors.contains(base)) return bad_input(where + " is there beside " + onnx::quote(base));
    if (blocks.length == 0) return bad_input(where + " is empty");
    weights::PackedMatrix m{shape[0] * shape[1], shape[2] * kBlock, shape[0]};
    m.kind = weights::CodeKind::e2m1, m.bits = 4, m.row_bytes = shape[2] * kBlockBytes;
    m.scale_columns = kBlock, m.rounding = weights::Rounding::bf16, m.exact = true;
    INVAR_TRY(m.parts[weights::kCodes], maps.part(blocks, weights::PartType::u8));
    INVAR_TRY(m.parts[weights::kScales], maps.part(scales->second, weights::PartType::e8m0));
    if (!bf16_holds_all(m.parts[weights::kCodes], m.parts[weights::kScales]))
      return not_covered(checkpoint.folder + "/" + blocks.file +
                         ": an element of an MXFP4 tensor is beyond the normal numbers of bf16");
    checkpoint.tensors.erase(name), checkpoint.tensors.erase(base + kScales);
    add_made(checkpoint, base, {shape[0], shape[2] * kBlock, shape[1]}, std::move(m), maps.all());
  }
  return {};
}

namespace {

// Writes a file by `write_one(i, descriptor, failed)` for each of `count` tensors.
template <class Write>
Status write_tensors(const std::string& path, size_t count, Write write_one) {
  if (count == 0) return {};
  Status status;
  const int error = replace_content(path, [&](int to) {
    int failed = 0;
    for (size_t i = 0; i < count && failed == 0 && status; ++i) status = write_one(i, to, failed);
    return status ? failed : EINVAL;
  });
  INVAR_CHECK_OK(status);
  if (error) return bad_input("cannot write " + onnx::quote(path) + ": " + std::strerror(error));
  return {};
}

// Element 4 * rows of a column are in the two bits i of its bytes, for i = 0 ... 3 one behind the
// other; 0, 1 and 2 are -1, 0 and 1.
Status write_ternary(Maps& maps, const std::string& folder, const TernaryTensor& t, int to, int& error) {
  constexpr uint16_t kValues[] = {0xbf80, 0, 0x3f80};
  INVAR_TRY(const weights::MatrixPart part, maps.part(t.packed, weights::PartType::u8));
  const uint8_t* const packed = part.bytes;
  std::vector<uint16_t> rows(t.packed.length);
  for (unsigned i = 0; i < 4 && error == 0; ++i) {
    for (size_t k = 0; k < rows.size(); ++k) {
      const unsigned code = packed[k] >> 2 * i & 3;
      if (code == 3)
        return bad_input(folder + "/" + t.packed.file +
                         ": two bits of a ternary matrix are 3, which is no element");
      rows[k] = kValues[code];
    }
    error = write_all(to, {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows[0]});
  }
  return {};
}

}  // namespace

std::vector<TernaryTensor> replace_ternary(Checkpoint& checkpoint) {
  std::vector<TernaryTensor> out;
  uint64_t offset = 0;
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.dtype != "U8" || tensor.shape.size() != 2 || !name.ends_with(".weight")) continue;
    out.push_back({tensor, offset});
    tensor.dtype = "BF16";
    tensor.shape[0] *= 4;
    tensor.file = kTernaryFile;
    tensor.offset = offset;
    tensor.length *= 8;
    offset += tensor.length;
  }
  return out;
}

Status write_ternary_as_bf16(const std::string& folder, const std::vector<TernaryTensor>& tensors,
                             const std::string& path) {
  Maps maps(folder);
  return write_tensors(path, tensors.size(), [&](size_t i, int to, int& failed) {
    return write_ternary(maps, folder, tensors[i], to, failed);
  });
}

}  // namespace invar::checkpoint
