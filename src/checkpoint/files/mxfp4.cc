#include "checkpoint/files/mxfp4.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

constexpr int64_t kBlock = 32, kBlockBytes = kBlock / 2;  // elements that share a scale; their bytes
constexpr const char *kBlocks = "_blocks", *kScales = "_scales";

// The element with the four bits `code` (sign, two of exponent, one of mantissa) times 2^(scale -
// 127), as bf16; 0xffff: bf16 does not hold it. With exponent bits e > 0 the value is 2^(e - 1) (1
// + m / 2), else m / 2.
uint16_t widened(unsigned code, unsigned scale) {
  const unsigned sign = (code >> 3) << 15, e = code >> 1 & 3, m = code & 1;
  if (e == 0 && m == 0) return static_cast<uint16_t>(sign);
  const unsigned exponent = e ? scale + e - 1 : scale - 1;  // biased by 127, as in bf16
  if (scale == 0 || exponent < 1 || exponent > 254) return 0xffff;
  return static_cast<uint16_t>(sign | exponent << 7 | (e ? m : 0) << 6);
}

// One expert: `out` rows of `groups` blocks -> [in, out], in tiles, so that writes stay in the
// cache. False: an element that bf16 does not hold.
bool widen_expert(const uint8_t* blocks, const uint8_t* scales, int64_t out, int64_t groups, uint16_t* to) {
  constexpr int64_t kTile = 64;
  bool held = true;
  for (int64_t row = 0; row < out; row += kTile)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t r = row; r < std::min(row + kTile, out); ++r) {
        const int64_t block = r * groups + g;
        uint16_t table[16];
        for (unsigned code = 0; code < 16; ++code) table[code] = widened(code, scales[block]);
        for (int64_t i = 0; i < kBlock; ++i) {
          const unsigned pair = blocks[block * kBlockBytes + i / 2];
          const uint16_t value = table[i % 2 ? pair >> 4 : pair & 15];
          held &= value != 0xffff;
          to[(g * kBlock + i) * out + r] = value;
        }
      }
  return held;
}

int write_all(int to, const char* p, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::write(to, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

// The files of a checkpoint, each mapped once.
class Maps {
 public:
  explicit Maps(std::string folder) : folder_(std::move(folder)) {}
  Result<const uint8_t*> bytes(const CheckpointTensor& t) {
    auto it = maps_.find(t.file);
    if (it == maps_.end()) {
      INVAR_TRY(MappedFile map, MappedFile::open(folder_ + "/" + t.file));
      it = maps_.emplace(t.file, std::move(map)).first;
    }
    const auto all = it->second.bytes();
    if (t.offset + t.length > all.size())
      return bad_input(folder_ + "/" + t.file + ": changed while it was read");
    return reinterpret_cast<const uint8_t*>(all.data()) + t.offset;
  }

 private:
  std::string folder_;
  std::map<std::string, MappedFile> maps_;
};

Status write_tensor(Maps& maps, const std::string& folder, const Mxfp4Tensor& t, int to, int& error) {
  INVAR_TRY(const uint8_t* blocks, maps.bytes(t.blocks));
  INVAR_TRY(const uint8_t* scales, maps.bytes(t.scales));
  const int64_t out = t.blocks.shape[1], groups = t.blocks.shape[2], count = out * groups;
  std::vector<uint16_t> expert(static_cast<size_t>(count * kBlock));
  for (int64_t e = 0; e < t.blocks.shape[0] && error == 0; ++e) {
    if (!widen_expert(blocks + e * count * kBlockBytes, scales + e * count, out, groups, expert.data()))
      return not_covered(folder + "/" + t.blocks.file +
                         ": an element of an MXFP4 tensor is beyond the normal numbers of bf16");
    error = write_all(to, reinterpret_cast<const char*>(expert.data()), expert.size() * sizeof expert[0]);
  }
  return {};
}

}  // namespace

Result<std::vector<Mxfp4Tensor>> replace_mxfp4(Checkpoint& checkpoint) {
  std::vector<Mxfp4Tensor> out;
  std::map<std::string, CheckpointTensor> kept;
  uint64_t offset = 0;
  for (const auto& [name, blocks] : checkpoint.tensors) {
    const bool is_scales = name.ends_with(kScales);
    const std::string base = name.substr(0, name.size() - std::min(name.size(), std::strlen(kBlocks)));
    if (is_scales && checkpoint.tensors.contains(base + kBlocks)) continue;
    if (!name.ends_with(kBlocks)) {
      kept.emplace(name, blocks);
      continue;
    }
    const std::string where = checkpoint.folder + "/" + blocks.file + ": tensor " + onnx::quote(name);
    const auto scales = checkpoint.tensors.find(base + kScales);
    std::vector<int64_t> shape = blocks.shape;
    if (blocks.dtype != "U8" || shape.size() != 4 || shape[3] != kBlockBytes)
      return bad_input(where + " is no U8 [experts, out, groups, 16]");
    shape.pop_back();
    if (scales == checkpoint.tensors.end() || scales->second.dtype != "U8" || scales->second.shape != shape)
      return bad_input(where + " has no " + onnx::quote(base + kScales) + ", U8 " + onnx::shape_text(shape));
    if (checkpoint.tensors.contains(base)) return bad_input(where + " is there beside " + onnx::quote(base));
    out.push_back({blocks, scales->second, offset});
    CheckpointTensor widened;
    widened.dtype = "BF16";
    widened.shape = {shape[0], shape[2] * kBlock, shape[1]};
    widened.file = kWidenedFile;
    widened.offset = offset;
    widened.length = blocks.length * 4;
    offset += widened.length;
    kept.emplace(base, std::move(widened));
  }
  checkpoint.tensors = std::move(kept);
  return out;
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
  INVAR_TRY(const uint8_t* packed, maps.bytes(t.packed));
  std::vector<uint16_t> rows(t.packed.length);
  for (unsigned i = 0; i < 4 && error == 0; ++i) {
    for (size_t k = 0; k < rows.size(); ++k) {
      const unsigned code = packed[k] >> 2 * i & 3;
      if (code == 3)
        return bad_input(folder + "/" + t.packed.file +
                         ": two bits of a ternary matrix are 3, which is no element");
      rows[k] = kValues[code];
    }
    error = write_all(to, reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows[0]);
  }
  return {};
}

}  // namespace

Status write_mxfp4_as_bf16(const std::string& folder, const std::vector<Mxfp4Tensor>& tensors,
                           const std::string& path) {
  Maps maps(folder);
  return write_tensors(path, tensors.size(), [&](size_t i, int to, int& failed) {
    return write_tensor(maps, folder, tensors[i], to, failed);
  });
}

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
