// Files of weights and indices of packed ones, see weight_file.h.
#include "weights/weight_file.h"

#ifndef __wasi__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstring>

#include "base/hash/sha256.h"
#include "num/env.h"
#include "weights/formats.h"

namespace invar::weights {
namespace {

constexpr size_t kPart = size_t{1} << 20;  // bytes that are unpacked at once, or one row

// Takes whole pages of a mapped file out of memory. Who reads them again gets them from the file.
void release_pages([[maybe_unused]] std::span<const std::byte> mapped) {
#ifndef __wasi__
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(mapped.data() + mapped.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // else they stay
#endif
}

uint64_t row_bytes(const Format& f, int64_t numbers) {
  return static_cast<uint64_t>(numbers / f.block * f.bytes);
}

}  // namespace

Result<size_t> WeightFile::file_at(const std::string& folder, const std::string& name) {
  const auto known = std::find(names_.begin() + 1, names_.end(), name);
  if (known != names_.end()) return static_cast<size_t>(known - names_.begin());
  INVAR_TRY(MappedFile map, MappedFile::open(folder + name));
  files_.push_back(std::move(map)), names_.push_back(name);
  return files_.size() - 1;
}

Result<WeightFile::Placed> WeightFile::place(const std::string& folder, PackedTensor t) {
  Placed p;
  const auto find_bytes = [&](const std::string& name, uint64_t at, uint64_t bytes) -> Status {
    INVAR_TRY(const size_t file, file_at(folder, name));
    const auto all = files_[file].bytes();
    if (at > all.size() || bytes > all.size() - at)
      return bad_input(folder + name + ": the file has " + std::to_string(all.size()) + " bytes, but " +
                       t.name + " should lie at offset " + std::to_string(at) + " with " +
                       std::to_string(bytes) + " bytes; fetch the file again");
    p.files.push_back(file), p.bytes.push_back(all.subspan(at, bytes));
    return {};
  };
  if (!t.matrix) {
    p.format = find_format(std::string_view(t.format));
    const int64_t rows = t.second_file.empty() ? t.rows : t.rows / 2;
    const uint64_t bytes = static_cast<uint64_t>(rows) * row_bytes(*p.format, t.numbers);
    INVAR_CHECK_OK(find_bytes(t.file, t.at, bytes));
    if (!t.second_file.empty()) {
      INVAR_CHECK_OK(find_bytes(t.second_file, t.second_at, bytes));
    }
  } else {
    p.matrix = std::make_shared<PackedMatrix>(*t.matrix);
    for (int i = 0; i < kPartsOfMatrix; ++i) {
      MatrixPart& part = p.matrix->parts[static_cast<size_t>(i)];
      if (part.type == PartType::none) continue;
      INVAR_CHECK_OK(find_bytes(part.file, part.at, p.matrix->bytes_of(static_cast<PartOf>(i))));
      part.bytes = reinterpret_cast<const uint8_t*>(p.bytes.back().data());
    }
    const auto coding = p.matrix->coding();
    if (!coding)
      return bad_input(folder + p.matrix->parts[kScales].file + ": the scales of " + t.name +
                       " are others than when the model was exported; remove the folder of the task");
    p.coding = *coding;
  }
  p.tensor = std::move(t);
  return p;
}

size_t WeightFile::Placed::row_bytes() const {
  const int64_t row = matrix            ? matrix->row_numbers()
                      : tensor.matrices ? tensor.rows / tensor.matrices
                                        : tensor.numbers;
  return static_cast<size_t>(row) * element_bytes(element());
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
    INVAR_TRY(Placed p, f.place(folder, std::move(t)));
    f.size_ = p.tensor.offset + p.tensor.length;
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
  PackedRows rows;
  rows.numbers = t.numbers, rows.rows = t.rows;
  if (p.format) {
    rows.format = p.format, rows.bytes = reinterpret_cast<const uint8_t*>(p.bytes[0].data());
    rows.stride = static_cast<int64_t>(weights::row_bytes(*p.format, t.numbers)), rows.head = t.head;
    rows.turned = t.matrices != 0;
    if (p.bytes.size() > 1) rows.second = reinterpret_cast<const uint8_t*>(p.bytes[1].data());
  } else {
    rows.matrix = p.matrix.get(), rows.coding = &p.coding, rows.turned = p.matrix->matrices != 0;
  }
  return rows;
}

std::optional<PackedRows> WeightFile::rows(uint64_t offset, uint64_t length) const {
  const Placed* p = placed(offset);
  if (!p) return {};
  PackedRows rows = rows_of(*p);
  // Of turned ones whole matrices.
  const int64_t matrices = p->matrix ? p->matrix->matrices : p->tensor.matrices;
  const auto of_matrix = static_cast<uint64_t>(rows.turned ? rows.rows / matrices : 1);
  const uint64_t unit = rows.turned ? p->row_bytes() * static_cast<uint64_t>(rows.numbers) : p->row_bytes();
  const uint64_t first = offset - p->tensor.offset;
  if (first % unit || length % unit || length > p->tensor.length - first) return {};
  rows.first = static_cast<int64_t>(first / unit * of_matrix);
  rows.rows = static_cast<int64_t>(length / unit * of_matrix);
  return rows;
}

int64_t WeightFile::unpack(const Placed& p, int64_t first, int64_t last, uint8_t* out) const {
  if (p.matrix) return p.matrix->elements(first, last, out);
  const PackedRows rows = rows_of(p);
  const Format& f = *p.format;
  if (rows.turned)
    return turned_elements(
        f.element, rows.numbers, p.tensor.rows / p.tensor.matrices, first, last,
        [&](int64_t r, int64_t begin, int64_t end, float* to) {
          float block[kLargestBlock];
          for (int64_t at = begin / f.block; at * f.block < end; ++at) {
            f.unpack(rows.row(r) + at * f.bytes, block);
            const int64_t from = std::max(begin, at * f.block), until = std::min(end, (at + 1) * f.block);
            std::copy(block + (from - at * f.block), block + (until - at * f.block), to + (from - begin));
          }
        },
        out);
  for (int64_t r = first; r < last; ++r, out += p.row_bytes())
    if (!unpack_row(*p.format, rows.row(r), rows.numbers, out)) return r;
  return -1;
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
    const size_t row = p->row_bytes();
    const uint64_t begin = offset - p->tensor.offset;
    const auto first = static_cast<int64_t>(begin / row);
    const uint64_t end = std::min(begin + length, p->tensor.length);
    const int64_t last = std::min(static_cast<int64_t>((end + row - 1) / row),
                                  first + static_cast<int64_t>(std::max<size_t>(1, kPart / row)));
    buffer.resize(static_cast<size_t>(last - first) * row);
    if (const int64_t wrong = unpack(*p, first, last, buffer.data()); wrong >= 0)
      return bad_input(names_[p->files[0]] + ": tensor '" + p->tensor.name + "': row " +
                       std::to_string(wrong) +
                       " has a number that is infinite or none, as its scale is: the file is damaged or was "
                       "made wrongly");
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

// What makes numbers of the bytes of a tensor, wherever these lie.
std::string WeightFile::how(const Placed& p) {
  PackedTensor how = p.tensor;
  how.offset = how.at = how.second_at = 0, how.file = how.name = "";
  if (how.matrix) {
    PackedMatrix matrix = *how.matrix;
    for (MatrixPart& part : matrix.parts) part.at = 0, part.file = "";
    how.matrix = std::make_shared<const PackedMatrix>(std::move(matrix));
  }
  return print_index({&how, 1});
}

Digest WeightFile::sha256_of_blocks(const Placed& p) const {
  Sha256 hash;
  hash.update(how(p));
  for (const auto bytes : p.bytes) hash.update(bytes.data(), bytes.size());
  return hash.finish();
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

uint64_t WeightFile::key_of(const Placed& p, size_t i, uint64_t offset) const {
  const auto at = static_cast<uint64_t>(p.bytes[i].data() - files_[p.files[i]].bytes().data());
  const std::string text = how(p) + std::to_string(at) + " " + std::to_string(offset - p.tensor.offset);
  const Digest digest = invar::sha256(text.data(), text.size());
  uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

bool WeightFile::is_known(const DigestCache& cache, uint64_t offset, uint64_t length,
                          const Digest& digest) const {
  if (!is_packed()) return cache.has(files_[0], offset, length, digest);
  const Placed* p = placed(offset);
  for (size_t i = 0; p && i < p->files.size(); ++i)
    if (!cache.has(files_[p->files[i]], key_of(*p, i, offset), length, digest)) return false;
  return p;
}

void WeightFile::remember(DigestCache& cache, uint64_t offset, uint64_t length, const Digest& digest) const {
  if (!is_packed()) return cache.add(files_[0], offset, length, digest);
  const Placed* p = placed(offset);
  if (!p || length > p->tensor.length - (offset - p->tensor.offset)) return;
  for (size_t i = 0; i < p->files.size(); ++i)
    cache.add(files_[p->files[i]], key_of(*p, i, offset), length, digest);
}

void WeightFile::release(uint64_t offset, uint64_t length) const {
  if (!is_packed()) return release_pages(files_[0].bytes().subspan(offset, length));
  if (const Placed* p = placed(offset))
    for (const auto bytes : p->bytes) release_pages(bytes);
}

bool WeightFile::changed() const {
  return std::ranges::any_of(files_, &MappedFile::changed);
}

std::vector<std::string> WeightFile::sources() const {
  return {names_.begin() + 1, names_.end()};
}

}  // namespace invar::weights
