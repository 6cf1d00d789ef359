// Merging: the bytes of a weight's file stay where they are, and those of changed weights are
// written over.
#include "checkpoint/adapter/merge.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/thread_pool.h"
#include "checkpoint/files/weight_files.h"
#include "num/convert/convert.h"
#include "num/env.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;

// The elements of a stored tensor, as numbers and back.
struct Elements {
  std::string dtype;
  size_t size() const { return dtype == "F32" ? 4 : 2; }
  float get(const uint8_t* p) const {
    uint32_t word = 0;
    for (size_t i = 0; i < size(); ++i) word |= static_cast<uint32_t>(p[i]) << (8 * i);
    if (dtype == "F32") return num::f32_from_bits(word);
    const auto half = static_cast<uint16_t>(word);
    return dtype == "BF16" ? num::f32_from_bf16(half) : num::f32_from_f16(half);
  }
  // Rounds to the type; false: the result is infinite or NaN.
  bool put(float x, uint8_t* p) const {
    const uint32_t word = dtype == "F32"    ? num::f32_bits(num::canonicalize(x))
                          : dtype == "BF16" ? num::bf16_from_f32(x)
                                            : num::f16_from_f32(x);
    for (size_t i = 0; i < size(); ++i) p[i] = static_cast<uint8_t>(word >> (8 * i));
    return std::isfinite(get(p));
  }
};

Result<std::vector<double>> read_matrix(const CheckpointTensor& t, const MappedFile& file) {
  const Elements of{t.dtype};
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.bytes().data()) + t.offset;
  std::vector<double> numbers(t.length / of.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(of.get(bytes + i * of.size()));
  return numbers;
}

// W + s (B A) of one weight. `turned`: W is stored [in, out].
struct Merge {
  const CheckpointTensor *weight, *a, *b;
  double scale;
  bool turned;
};

// All rows of the result in the weight's type, or an empty text: one is infinite or NaN.
std::string merged(const Merge& m, const uint8_t* stored, const std::vector<double>& a,
                   const std::vector<double>& b, Pool& pool) {
  const Elements of{m.weight->dtype};
  const auto rank = static_cast<size_t>(m.a->shape[0]), in = static_cast<size_t>(m.a->shape[1]);
  const auto out = static_cast<size_t>(m.b->shape[0]);
  std::string bytes(m.weight->length, '\0');
  std::atomic<bool> finite = true;
  pool.run(static_cast<int64_t>(out), [&](int, int64_t begin, int64_t end) {
    const num::ArithmeticEnv env;
    std::vector<double> row(in);
    for (auto o = static_cast<size_t>(begin); o < static_cast<size_t>(end); ++o) {
      std::ranges::fill(row, 0.0);
      for (size_t r = 0; r < rank; ++r)  // each product of two numbers of binary32 is exact
        for (size_t i = 0; i < in; ++i) row[i] += b[o * rank + r] * a[r * in + i];
      for (size_t i = 0; i < in; ++i) {
        const size_t at = (m.turned ? i * out + o : o * in + i) * of.size();
        const double sum = static_cast<double>(of.get(stored + at)) + m.scale * row[i];
        if (!of.put(static_cast<float>(sum), reinterpret_cast<uint8_t*>(bytes.data()) + at)) finite = false;
      }
    }
  });
  return finite ? bytes : std::string();
}

// Files of a checkpoint beside its weights that go with the merged one.
bool goes_along(const std::string& name) {
  if (name.starts_with("adapter_")) return false;
  return std::ranges::any_of(std::vector<std::string>{".json", ".model", ".tiktoken", ".jinja", ".txt"},
                             [&](const std::string& end) { return name.ends_with(end); });
}

Status check_new(const std::string& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error || !fs::is_directory(out, error))
    return bad_input("cannot create the folder " + onnx::quote(out) + ": " + error.message());
  if (!fs::is_empty(out, error))
    return bad_input(out + ": the folder is not empty: a merged model gets a folder of its own");
  return {};
}

class Merger {
 public:
  Merger(const Checkpoint& base, const Checkpoint& placed, const std::string& out)
      : base_(base), placed_(placed), out_(out), pool_(available_cores()) {}

  Status add(const Merge& m) {
    INVAR_TRY(const MappedFile stored, MappedFile::open(out_ + "/" + m.weight->file));
    INVAR_TRY(const MappedFile file, MappedFile::open(placed_.adapter->tensor_file()));
    INVAR_TRY(const std::vector<double> a, read_matrix(*m.a, file));
    INVAR_TRY(const std::vector<double> b, read_matrix(*m.b, file));
    const auto* bytes = reinterpret_cast<const uint8_t*>(stored.bytes().data()) + m.weight->offset;
    const std::string result = merged(m, bytes, a, b, pool_);
    if (result.empty()) return overflow(*m.weight);
    return write_over(*m.weight, result);
  }
  // A tensor of modules_to_save, in the type of the one that it replaces.
  Status replace(const CheckpointTensor& weight, const CheckpointTensor& with) {
    INVAR_TRY(const MappedFile file, MappedFile::open(with.folder + "/" + with.file));
    const Elements from{with.dtype}, to{weight.dtype};
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.bytes().data()) + with.offset;
    std::string result(weight.length, '\0');
    for (size_t i = 0; i < weight.length / to.size(); ++i)
      if (!to.put(from.get(bytes + i * from.size()),
                  reinterpret_cast<uint8_t*>(result.data()) + i * to.size()))
        return overflow(weight);
    return write_over(weight, result);
  }

 private:
  Status overflow(const CheckpointTensor& weight) const {
    return bad_input(placed_.adapter->folder() + ": merged into " + base_.folder + "/" + weight.file +
                     ", a weight would be infinite or NaN");
  }
  Status write_over(const CheckpointTensor& weight, const std::string& bytes) const {
    const std::string path = out_ + "/" + weight.file;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(weight.offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return bad_input("cannot write '" + path + "'");
    return {};
  }

  const Checkpoint &base_, &placed_;
  const std::string& out_;
  Pool pool_;
};

Status check_plain(const Checkpoint& base, const std::string& name, bool is_head) {
  const auto found = base.tensors.find(name);
  if (found == base.tensors.end() && is_head)
    return not_covered(base.folder + ": there is no tensor " + onnx::quote(name) +
                       ", since one table serves tokens and logits: a merged model would need another "
                       "config.json: use the adapter with --adapter");
  const bool plain = found != base.tensors.end() && found->second.file.ends_with(".safetensors") &&
                     std::ranges::count(base.files, found->second.file) > 0;
  if (!plain ||
      (found->second.dtype != "F32" && found->second.dtype != "BF16" && found->second.dtype != "F16"))
    return not_covered(
        base.folder + ": tensor " + onnx::quote(name) +
        " is packed, and an adapter is merged into F32, BF16 and F16 alone: use it with --adapter");
  return {};
}

}  // namespace

Status write_merged(const Checkpoint& base, const Checkpoint& placed, bool turned, const std::string& head,
                    const std::string& out) {
  std::vector<Merge> merges;
  for (const auto& [module, tensor] : placed.adapter->used()) {
    const std::string name = tensor + ".weight";
    INVAR_CHECK_OK(check_plain(base, name, tensor == head));
    const LowRank& low = placed.adapter->modules().at(module);
    merges.push_back({&base.tensors.at(name), &placed.tensors.at(low.a), &placed.tensors.at(low.b),
                      static_cast<double>(low.scale), turned && tensor != head});
  }
  std::vector<std::pair<const CheckpointTensor*, const CheckpointTensor*>> replaced;
  for (const auto& [name, tensor] : placed.tensors) {
    if (tensor.folder.empty() || name.starts_with(kAdapterPrefix)) continue;
    INVAR_CHECK_OK(check_plain(base, name, name == head + ".weight"));
    replaced.emplace_back(&base.tensors.at(name), &tensor);
  }
  INVAR_CHECK_OK(check_new(out));
  for (const std::string& file : base.files)
    INVAR_CHECK_OK(make_copy(base.folder + "/" + file, out + "/" + file));
  Merger merger(base, placed, out);
  for (const auto& [weight, with] : replaced) INVAR_CHECK_OK(merger.replace(*weight, *with));
  for (const Merge& m : merges) INVAR_CHECK_OK(merger.add(m));
  // Then what makes the folder a model.
  INVAR_TRY(std::vector<std::string> names, names_in(base.folder));
  std::ranges::sort(names, {},
                    [](const std::string& name) { return std::pair(name == "config.json", name); });
  std::erase_if(names, [](const std::string& name) { return !goes_along(name); });
  for (const std::string& name : names) INVAR_CHECK_OK(make_copy(base.folder + "/" + name, out + "/" + name));
  return {};
}

}  // namespace invar::checkpoint
