#include "checkpoint/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/file/temporary_file.h"
#include "base/text/utf8.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"
#include "weights/formats.h"

namespace invar::checkpoint {
namespace {

constexpr size_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // of GgufValue::Type
constexpr uint32_t kMostDimensions = 4;
constexpr uint64_t kMostNameBytes = 1 << 16;  // of a key or of a tensor's name

uint64_t integer_at(const char* p, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(p[i])) << 8 * i;
  return value;
}

// The bytes of one file, from the start.
class GgufCursor {
 public:
  GgufCursor(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  uint64_t position() const { return at_; }
  const std::string& where() const { return where_; }
  Result<uint64_t> integer(size_t width, const char* what) {
    INVAR_TRY(const std::string_view raw, take(width, what));
    return integer_at(raw.data(), width);
  }
  Result<std::string_view> take(uint64_t bytes, const std::string& what) {
    if (bytes > bytes_.size() - at_)
      return bad_input(where_ + ": the file ends within " + what + " at byte " + std::to_string(at_) +
                       ": it is truncated or damaged; fetch it again");
    const std::string_view taken = bytes_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }
  Result<std::string_view> text(const std::string& what) {
    INVAR_TRY(const uint64_t length, integer(8, what.c_str()));
    return take(length, what);
  }
  Result<std::string> name(const char* what) {
    INVAR_TRY(const std::string_view text, this->text(what));
    if (text.empty() || text.size() > kMostNameBytes || valid_prefix(text) != text.size())
      return bad_input(where_ + ": " + what + " before byte " + std::to_string(at_) +
                       " is empty, too long or not UTF-8: the file is damaged");
    return std::string(text);
  }

 private:
  std::string_view bytes_;
  std::string where_;
  uint64_t at_ = 0;
};

Result<GgufValue> read_value(GgufCursor& in, const std::string& what) {
  GgufValue v;
  INVAR_TRY(uint64_t type, in.integer(4, "a type"));
  if (type == GgufValue::array) {
    INVAR_TRY(type, in.integer(4, "a type"));
    INVAR_TRY(v.count, in.integer(8, "the length of a list"));
    v.is_list = true;
  }
  if (type > GgufValue::f64 || type == GgufValue::array)
    return bad_input(in.where() + ": " + what + " has the type " + std::to_string(type) +
                     ", which GGUF does not have" + (v.is_list ? " in lists" : ""));
  v.type = static_cast<GgufValue::Type>(type);
  if (v.type != GgufValue::text) {
    const size_t width = kWidths[type];
    if (v.count > UINT64_MAX / width)
      return bad_input(in.where() + ": " + what + " claims " + std::to_string(v.count) + " elements");
    INVAR_TRY(v.bytes, in.take(v.count * width, what));
    return v;
  }
  if (!v.is_list) {
    INVAR_TRY(v.bytes, in.text(what));
    return v;
  }
  std::string_view all;  // grows over the texts, which lie one behind the other
  for (uint64_t i = 0; i < v.count; ++i) {
    INVAR_TRY(const std::string_view text, in.text(what));
    const char* begin = i == 0 ? text.data() - 8 : all.data();
    all = {begin, static_cast<size_t>(text.data() + text.size() - begin)};
  }
  v.bytes = all;
  return v;
}

// Reads the name, shape, type and offset of a tensor. The offset is still relative to the data.
Result<std::pair<std::string, GgufTensor>> read_tensor_info(GgufCursor& in) {
  INVAR_TRY(std::string name, in.name("the name of a tensor"));
  const std::string where = in.where() + ": tensor " + onnx::quote(name);
  GgufTensor t;
  INVAR_TRY(const uint64_t rank, in.integer(4, "a tensor's rank"));
  if (rank > kMostDimensions)
    return bad_input(where + " has " + std::to_string(rank) + " dimensions; GGUF has 4 at most");
  for (uint64_t i = 0; i < rank; ++i) {
    INVAR_TRY(const uint64_t size, in.integer(8, "a dimension"));
    if (size == 0 || size > INT64_MAX) return bad_input(where + ": a dimension is not a size");
    t.shape.insert(t.shape.begin(), static_cast<int64_t>(size));
  }
  if (rank == 0) t.shape = {1};
  INVAR_TRY(const uint64_t type, in.integer(4, "a tensor's type"));
  INVAR_TRY(t.offset, in.integer(8, "a tensor's offset"));
  t.type = static_cast<int>(std::min<uint64_t>(type, INT32_MAX));
  if (type > 0xffff)
    return bad_input(where + " has the type " + std::to_string(type) + ": the file is damaged");
  const auto most = onnx::byte_size(t.shape, 32);
  if (!most) return bad_input(where + ": shape " + onnx::shape_text(t.shape) + " is larger than any file");
  if (const weights::Format* f = weights::find_format(t.type)) {
    if (t.shape.back() % f->block != 0)
      return bad_input(where + ": rows of " + std::to_string(t.shape.back()) + " numbers are no blocks of " +
                       std::to_string(f->block) + ", as " + f->name + " has them");
    t.length = *most / 4 / static_cast<uint64_t>(f->block) * static_cast<uint64_t>(f->bytes);
  }
  return std::pair(std::move(name), std::move(t));
}

// The places of the tensors of one file, in order: each begins where the one before ends, padded.
Status check_places(std::vector<std::pair<std::string, GgufTensor>>& tensors, const std::string& where,
                    uint64_t data, uint64_t file_bytes, uint64_t alignment) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.second.offset < b.second.offset; });
  uint64_t position = 0;
  bool known = true;  // whether `position` is: a type that is not read has no length here
  for (auto& [name, t] : tensors) {
    const std::string tensor = where + ": tensor " + onnx::quote(name);
    if (t.offset % alignment != 0)
      return bad_input(tensor + ": its offset " + std::to_string(t.offset) +
                       " is no multiple of the alignment " + std::to_string(alignment));
    if (t.offset > file_bytes - data || t.length > file_bytes - data - t.offset)
      return bad_input(tensor + ": ends beyond the " + std::to_string(file_bytes) +
                       " bytes of the file; it is truncated: fetch it again");
    if (t.offset < position) return bad_input(tensor + ": its bytes overlap those of the tensor before it");
    if (known && t.offset - position >= alignment)
      return bad_input(tensor + ": " + std::to_string(t.offset - position) +
                       " bytes before it belong to no tensor");
    position = t.offset + t.length, known = t.length != 0;
    t.offset += data;
  }
  if (known && file_bytes - data > position && file_bytes - data - position >= alignment)
    return bad_input(where + ": " + std::to_string(file_bytes - data - position) +
                     " bytes at the end belong to no tensor");
  return {};
}

Status check_magic(GgufCursor& in, uint64_t file_bytes) {
  INVAR_TRY(const std::string_view magic, in.take(std::min<uint64_t>(4, file_bytes), "its first bytes"));
  if (magic != "GGUF") return bad_input(in.where() + ": not a GGUF file: it does not begin with \"GGUF\"");
  INVAR_TRY(const uint64_t version, in.integer(4, "the version"));
  if (version == 2 || version == 3) return {};
  if (version % 0x10000 == 0)
    return not_covered(in.where() + ": a big-endian GGUF file is not covered; little-endian ones are");
  return not_covered(in.where() + ": version " + std::to_string(version) +
                     " of GGUF is not covered; 2 and 3 are: convert the model again with llama.cpp");
}

// Reads one file into `g`; of a later part of a model the metadata stay in `later`.
Status add_part(Gguf& g, const std::string& path, std::map<std::string, GgufValue, std::less<>>& metadata) {
  INVAR_TRY(MappedFile map, MappedFile::open(path));
  GgufCursor in(map.text(), path);
  INVAR_CHECK_OK(check_magic(in, map.text().size()));
  INVAR_TRY(const uint64_t tensors, in.integer(8, "the number of tensors"));
  INVAR_TRY(const uint64_t pairs, in.integer(8, "the number of keys"));
  for (uint64_t i = 0; i < pairs; ++i) {
    INVAR_TRY(std::string key, in.name("a key"));
    INVAR_TRY(GgufValue value, read_value(in, "the key " + onnx::quote(key)));
    if (!metadata.emplace(key, value).second)
      return bad_input(path + ": the key " + onnx::quote(key) + " is given twice");
  }
  std::vector<std::pair<std::string, GgufTensor>> places;
  for (uint64_t i = 0; i < tensors; ++i) {
    INVAR_TRY(auto place, read_tensor_info(in));
    places.push_back(std::move(place));
  }
  uint64_t alignment = 32;
  if (const auto given = metadata.find("general.alignment"); given != metadata.end()) {
    const auto size = given->second.size();
    if (!size || !std::has_single_bit(*size) || *size > 1 << 20)
      return bad_input(path + ": general.alignment is no power of two up to 2^20");
    alignment = *size;
  }
  const uint64_t data = (in.position() + alignment - 1) / alignment * alignment, bytes = map.text().size();
  if (data > bytes && !places.empty())
    return bad_input(path + ": the file ends before its tensors: it is truncated; fetch it again");
  INVAR_CHECK_OK(check_places(places, path, std::min(data, bytes), bytes, alignment));
  for (auto& [name, t] : places) {
    t.file = static_cast<int>(g.files.size());
    if (!g.tensors.emplace(name, std::move(t)).second)
      return bad_input(path + ": tensor " + onnx::quote(name) + " is given twice");
  }
  g.header_bytes.push_back(in.position());
  g.files.push_back(path.substr(path.rfind('/') + 1));
  g.maps.push_back(std::move(map));
  return {};
}

// NAME-00001-of-00003.gguf -> NAME; "" where the file's name is no such one.
std::string stem_of_parts(const std::string& file, uint64_t number, uint64_t count) {
  const auto digits = [](uint64_t n) {
    const std::string text = std::to_string(n);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  const std::string end = "-" + digits(number) + "-of-" + digits(count) + ".gguf";
  return file.ends_with(end) ? file.substr(0, file.size() - end.size()) + "\n" + end : "";
}

Status add_other_parts(Gguf& g) {
  const GgufValue *count = g.find("split.count"), *number = g.find("split.no"),
                  *tensors = g.find("split.tensors.count");
  if (!count) return {};
  const auto parts = count->size(), first = number ? number->size() : std::optional<uint64_t>(0);
  if (!parts || *parts > 99999 || !first || *first >= std::max<uint64_t>(*parts, 1))
    return bad_input(g.path + ": split.count and split.no are not a number of files and one of them");
  if (*parts <= 1) return {};
  const std::string stem = stem_of_parts(g.files[0], *first + 1, *parts);
  if (stem.empty())
    return bad_input(g.path + ": it is part " + std::to_string(*first + 1) + " of " + std::to_string(*parts) +
                     ", but its name does not end so: name the parts NAME-00001-of-00002.gguf");
  const std::string name = stem.substr(0, stem.find('\n'));
  if (*first != 0)
    return bad_input(g.path + ": part " + std::to_string(*first + 1) + " of " + std::to_string(*parts) +
                     ": give the first, " + name + "-00001-of-...");
  const std::string folder = folder_of(g.path);
  for (uint64_t i = 1; i < *parts; ++i) {
    std::string end = stem_of_parts(g.files[0], 1, *parts);
    end = end.substr(end.find('\n') + 1);
    const std::string text = std::to_string(i + 1);
    end.replace(6 - text.size(), text.size(), text);
    const std::string path = folder + "/" + name + end;
    std::map<std::string, GgufValue, std::less<>> metadata;
    INVAR_CHECK_OK(add_part(g, path, metadata));
    const auto no = metadata.find("split.no"), of = metadata.find("split.count");
    if (no == metadata.end() || no->second.size() != i || of == metadata.end() || of->second.size() != parts)
      return bad_input(path + ": its split.no and split.count are not " + std::to_string(i) + " and " +
                       std::to_string(*parts) + ", so it is of another model");
  }
  if (tensors && tensors->size() != g.tensors.size())
    return bad_input(g.path + ": its parts have " + std::to_string(g.tensors.size()) +
                     " tensors, but split.tensors.count is another number");
  return {};
}

}  // namespace

std::optional<uint64_t> GgufValue::size() const {
  if (is_list || type == f32 || type == f64 || type == boolean || type == text) return {};
  const size_t width = kWidths[type];
  const uint64_t value = integer_at(bytes.data(), width);
  const bool is_signed = type == i8 || type == i16 || type == i32 || type == i64;
  if (is_signed && value >> (8 * width - 1)) return {};
  return value;
}

static double number_at(GgufValue::Type type, const char* p) {
  const uint64_t raw = integer_at(p, kWidths[type]);
  switch (type) {
    case GgufValue::f32: return std::bit_cast<float>(static_cast<uint32_t>(raw));
    case GgufValue::f64: return std::bit_cast<double>(raw);
    case GgufValue::i8: return static_cast<int8_t>(raw);
    case GgufValue::i16: return static_cast<int16_t>(raw);
    case GgufValue::i32: return static_cast<int32_t>(raw);
    case GgufValue::i64: return static_cast<double>(static_cast<int64_t>(raw));
    default: return static_cast<double>(raw);
  }
}

std::optional<double> GgufValue::number() const {
  if (is_list || type == text || type == boolean) return {};
  return number_at(type, bytes.data());
}

std::optional<bool> GgufValue::flag() const {
  if (is_list || type != boolean) return {};
  return bytes[0] != 0;
}

std::optional<std::string_view> GgufValue::string() const {
  if (is_list || type != text) return {};
  return bytes;
}

std::vector<std::string_view> GgufValue::strings() const {
  std::vector<std::string_view> out;
  if (!is_list || type != text) return out;
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t length = integer_at(bytes.data() + at, 8);
    out.push_back(bytes.substr(at + 8, length));
    at += 8 + length;
  }
  return out;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  if (type == text || type == boolean) return {};
  std::vector<double> out;
  const size_t width = kWidths[type];
  for (size_t at = 0; at < bytes.size(); at += width) out.push_back(number_at(type, bytes.data() + at));
  return out;
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : &found->second;
}

Result<Gguf> open_gguf(const std::string& path) {
  Gguf g;
  g.path = path;
  INVAR_CHECK_OK(add_part(g, path, g.metadata));
  INVAR_CHECK_OK(add_other_parts(g));
  return g;
}

}  // namespace invar::checkpoint
