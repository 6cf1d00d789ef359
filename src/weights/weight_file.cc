// Files of weights and indices of packed ones, see weight_file.h.
#include "weights/weight_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/hash/sha256.h"
#include "num/env.h"
#include "weights/formats.h"

namespace invar::weights {
namespace {

constexpr std::string_view kHeading = "invar packed weights 1\n";
constexpr int64_t kMostNumbers = int64_t{1} << 40;
constexpr size_t kPart = size_t{1} << 20;  // bytes that are unpacked at once, or one row

bool is_plain(std::string_view text) {
  return !text.empty() &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 32; });
}

uint64_t row_bytes(const Format& f, int64_t numbers) {
  return static_cast<uint64_t>(numbers / f.block * f.bytes);
}

// The next part of a line, up to a tab.
std::string_view next_part(std::string_view& line) {
  const size_t end = std::min(line.find('\t'), line.size());
  const std::string_view part = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return part;
}

template <class T>
bool next_number(std::string_view& line, T& value) {
  const std::string_view part = next_part(line);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  return error == std::errc() && end == part.data() + part.size() && value >= 0;
}

bool parse_line(std::string_view line, PackedTensor& t) {
  if (!next_number(line, t.offset) || !next_number(line, t.length)) return false;
  t.format = next_part(line);
  if (!next_number(line, t.at) || !next_number(line, t.rows) || !next_number(line, t.numbers) ||
      !next_number(line, t.head))
    return false;
  t.file = next_part(line), t.name = next_part(line);
  const Format* f = find_format(std::string_view(t.format));
  if (!f || !line.empty() || !fits_index(t) || t.file == ".." || t.file.find('/') != std::string::npos)
    return false;
  if (t.rows == 0 || t.numbers == 0 || t.numbers % f->block || t.rows > kMostNumbers / t.numbers)
    return false;
  if (t.head % 2 || (t.head && t.rows % t.head)) return false;
  const uint64_t bytes = static_cast<uint64_t>(t.rows * t.numbers) * element_bytes(f->element);
  return t.length == bytes && t.offset <= UINT64_MAX / 2;
}

}  // namespace

bool is_index(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1) == kIndexFile;
}

bool fits_index(const PackedTensor& t) {
  return is_plain(t.file) && is_plain(t.name);
}

std::string print_index(std::span<const PackedTensor> tensors) {
  std::string out(kHeading);
  for (const PackedTensor& t : tensors) {
    for (const uint64_t n : {t.offset, t.length}) out += std::to_string(n) + "\t";
    out += t.format + "\t" + std::to_string(t.at) + "\t";
    for (const int64_t n : {t.rows, t.numbers, t.head}) out += std::to_string(n) + "\t";
    out += t.file + "\t" + t.name + "\n";
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

Result<WeightFile> WeightFile::open(const std::string& path) {
  WeightFile f;
  INVAR_TRY(MappedFile own, MappedFile::open(path));
  f.path_ = path, f.size_ = own.bytes().size();
  f.files_.push_back(std::move(own)), f.names_.push_back(path);
  if (!is_index(path)) return f;
  INVAR_TRY(std::vector<PackedTensor> tensors, parse_index(f.files_[0].text(), path));
  const std::string folder = path.substr(0, path.size() - kIndexFile.size());
  f.size_ = 0;
  for (PackedTensor& t : tensors) {
    auto file = std::find(f.names_.begin() + 1, f.names_.end(), t.file);
    if (file == f.names_.end()) {
      INVAR_TRY(MappedFile map, MappedFile::open(folder + t.file));
      f.files_.push_back(std::move(map)), f.names_.push_back(t.file);
      file = f.names_.end() - 1;
    }
    Placed p{{}, find_format(std::string_view(t.format)), static_cast<size_t>(file - f.names_.begin())};
    const uint64_t size = f.files_[p.file].bytes().size();
    const uint64_t bytes = static_cast<uint64_t>(t.rows) * row_bytes(*p.format, t.numbers);
    if (t.at > size || bytes > size - t.at)
      return bad_input(folder + t.file + ": the file has " + std::to_string(size) + " bytes, but " + t.name +
                       " should lie at offset " + std::to_string(t.at) + " with " + std::to_string(bytes) +
                       " bytes; fetch the file again");
    f.size_ = t.offset + t.length;
    p.tensor = std::move(t);
    f.tensors_.push_back(std::move(p));
  }
  // A file that is not there, or cut off, only costs time.
  const auto checked = read_file(folder + std::string(kCheckedFile));
  std::string_view text = checked ? std::string_view(*checked) : std::string_view();
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    uint64_t offset = 0;
    if (!next_number(line, offset)) continue;
    const auto numbers = digest_from_hex(next_part(line)), blocks = digest_from_hex(line);
    if (numbers && blocks) f.checked_[offset] = {*numbers, *blocks};
  }
  return f;
}

const WeightFile::Placed* WeightFile::placed(uint64_t offset) const {
  auto after =
      std::ranges::upper_bound(tensors_, offset, {}, [](const Placed& p) { return p.tensor.offset; });
  if (after == tensors_.begin()) return nullptr;
  --after;
  return offset - after->tensor.offset < after->tensor.length ? &*after : nullptr;
}

PackedRows WeightFile::rows_of(const Placed& p) const {
  const PackedTensor& t = p.tensor;
  return {p.format,  reinterpret_cast<const uint8_t*>(files_[p.file].bytes().data()) + t.at,
          t.numbers, static_cast<int64_t>(row_bytes(*p.format, t.numbers)),
          t.rows,    0,
          t.head};
}

std::optional<PackedRows> WeightFile::rows(uint64_t offset, uint64_t length) const {
  const Placed* p = placed(offset);
  if (!p) return {};
  PackedRows rows = rows_of(*p);
  const uint64_t row = static_cast<uint64_t>(rows.numbers) * element_bytes(p->format->element);
  const uint64_t first = offset - p->tensor.offset;
  if (first % row || length % row || length > p->tensor.length - first) return {};
  rows.first = static_cast<int64_t>(first / row), rows.rows = static_cast<int64_t>(length / row);
  return rows;
}

Status WeightFile::read(uint64_t offset, uint64_t length, const Take& take) const {
  if (!is_packed()) {
    for (uint64_t done = 0; done < length;) {
      const size_t part = static_cast<size_t>(std::min<uint64_t>(length - done, kPart));
      INVAR_CHECK_OK(take(files_[0].bytes().subspan(static_cast<size_t>(offset + done), part)));
      done += part;
    }
    return {};
  }
  const num::ArithmeticEnv env;  // whichever thread this is
  std::vector<uint8_t> buffer;
  while (length > 0) {
    const Placed* p = placed(offset);
    if (!p)
      return bad_input(path_ + ": no tensor has the byte " + std::to_string(offset) +
                       "; remove the folder, and it is made again");
    const PackedRows rows = rows_of(*p);
    const size_t row = static_cast<size_t>(rows.numbers) * element_bytes(p->format->element);
    const uint64_t begin = offset - p->tensor.offset;
    const int64_t first = static_cast<int64_t>(begin / row);
    const uint64_t end = std::min(begin + length, p->tensor.length);
    const int64_t last = std::min(static_cast<int64_t>((end + row - 1) / row),
                                  first + static_cast<int64_t>(std::max<size_t>(1, kPart / row)));
    buffer.resize(static_cast<size_t>(last - first) * row);
    for (int64_t r = first; r < last; ++r)
      if (!unpack_row(*p->format, rows.row(r), rows.numbers,
                      buffer.data() + static_cast<size_t>(r - first) * row))
        return bad_input(names_[p->file] + ": tensor '" + p->tensor.name + "': row " + std::to_string(r) +
                         " has a number that is infinite or none, as its scale is: the file is damaged or "
                         "was made wrongly");
    const uint64_t skipped = begin - static_cast<uint64_t>(first) * row;
    const uint64_t part = std::min<uint64_t>(buffer.size() - skipped, end - begin);
    INVAR_CHECK_OK(take(std::as_bytes(std::span(buffer)).subspan(skipped, static_cast<size_t>(part))));
    offset += part, length -= part;
  }
  return {};
}

Status WeightFile::copy(uint64_t offset, uint64_t length, std::byte* to) const {
  return read(offset, length, [&](std::span<const std::byte> part) -> Status {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
    return {};
  });
}

Result<Digest> WeightFile::sha256(uint64_t offset, uint64_t length) const {
  Sha256 hash;
  INVAR_CHECK_OK(read(offset, length, [&](std::span<const std::byte> part) -> Status {
    hash.update(part.data(), part.size());
    return {};
  }));
  return hash.finish();
}

// The blocks, and what makes numbers of them.
Digest WeightFile::sha256_of_blocks(const Placed& p) const {
  const PackedRows rows = rows_of(p);
  PackedTensor how = p.tensor;
  how.offset = how.at = 0, how.file = how.name = "";
  return Sha256()
      .update(print_index({&how, 1}))
      .update(rows.bytes, static_cast<size_t>(rows.bytes_of_rows()))
      .finish();
}

Result<Digest> WeightFile::checked_sha256(uint64_t offset, uint64_t length, const Digest& expected) const {
  const Placed* p = is_packed() ? placed(offset) : nullptr;
  if (p && p->tensor.offset == offset && p->tensor.length == length) {
    const auto known = checked_.find(offset);
    if (known != checked_.end() && known->second.first == expected &&
        known->second.second == sha256_of_blocks(*p))
      return expected;
  }
  return sha256(offset, length);
}

Status WeightFile::write_checked(std::span<const Checked> ranges) const {
  std::string out;
  for (const Checked& r : ranges)
    if (const Placed* p = placed(r.offset); p && p->tensor.offset == r.offset && p->tensor.length == r.length)
      out += std::to_string(r.offset) + "\t" + to_hex(r.numbers) + "\t" + to_hex(sha256_of_blocks(*p)) + "\n";
  if (changed()) return {};
  return write_file(path_.substr(0, path_.size() - kIndexFile.size()) + std::string(kCheckedFile), out);
}

namespace {

// Which numbers are made of the bytes at `at`, as a key beside the offset of bytes themselves.
uint64_t key_of(const PackedTensor& t, uint64_t begin) {
  return t.at + begin +
         (static_cast<uint64_t>(find_format(std::string_view(t.format)) - formats().data() + 1) << 56) +
         (static_cast<uint64_t>(t.head) << 44);
}

}  // namespace

bool WeightFile::is_known(const DigestCache& cache, uint64_t offset, uint64_t length,
                          const Digest& digest) const {
  if (!is_packed()) return cache.has(files_[0], offset, length, digest);
  const Placed* p = placed(offset);
  return p && cache.has(files_[p->file], key_of(p->tensor, offset - p->tensor.offset), length, digest);
}

void WeightFile::remember(DigestCache& cache, uint64_t offset, uint64_t length, const Digest& digest) const {
  if (!is_packed()) return cache.add(files_[0], offset, length, digest);
  if (const Placed* p = placed(offset); p && length <= p->tensor.length - (offset - p->tensor.offset))
    cache.add(files_[p->file], key_of(p->tensor, offset - p->tensor.offset), length, digest);
}

bool WeightFile::changed() const {
  return std::ranges::any_of(files_, &MappedFile::changed);
}

std::vector<std::string> WeightFile::sources() const {
  return {names_.begin() + 1, names_.end()};
}

}  // namespace invar::weights
