// Tensors that are written out for kernels, in a file beside the model.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/file/write_files.h"
#include "checkpoint/folder.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {

void add_made(Checkpoint& checkpoint, const std::string& name, const std::string& dtype,
              std::vector<int64_t> shape, uint64_t bytes, std::function<Status(const EmitBytes&)> write) {
  CheckpointTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.file = kMadeFile;
  t.offset = checkpoint.made.empty() ? 0 : checkpoint.made.back().offset + checkpoint.made.back().length;
  t.length = bytes;
  checkpoint.made.push_back({name, t.offset, t.length, std::move(write)});
  checkpoint.tensors[name] = std::move(t);
}

void add_made(Checkpoint& checkpoint, const std::string& name, std::vector<int64_t> shape,
              weights::PackedMatrix matrix, std::vector<std::shared_ptr<const MappedFile>> files) {
  constexpr int64_t kPart = int64_t{1} << 20;  // bytes at once
  const std::string where = checkpoint.folder + ": tensor " + onnx::quote(name);
  const auto m = std::make_shared<const weights::PackedMatrix>(std::move(matrix));
  const int64_t row = m->row_numbers(),
                bytes = row * static_cast<int64_t>(weights::element_bytes(m->element()));
  const int64_t rows = m->rows * m->columns / row;
  add_made(checkpoint, name, m->element(), std::move(shape), static_cast<uint64_t>(rows * bytes),
           [=, files = std::move(files)](const EmitBytes& emit) -> Status {
             const int64_t most = std::max<int64_t>(1, kPart / bytes);
             std::vector<uint8_t> part;
             for (int64_t r = 0; r < rows; r += most) {
               const int64_t end = std::min(rows, r + most);
               part.resize(static_cast<size_t>((end - r) * bytes));
               if (const int64_t wrong = m->elements(r, end, part.data()); wrong >= 0)
                 return bad_input(
                     where + ": row " + std::to_string(wrong) +
                     " has a number that is infinite or none: the file is damaged or was made wrongly");
               INVAR_CHECK_OK(emit(part));
             }
             return {};
           });
  if (m->coding()) checkpoint.made.back().packed = {0, 0, "", "", 0, m->rows, m->columns, 0, name, m};
}

Status write_made(const Checkpoint& checkpoint, const std::set<uint64_t>& used, const std::string& path) {
  if (used.empty()) return {};
  Status status;
  const int error = replace_content(path, [&](int to) {
    int failed = 0;
    const EmitBytes emit = [&](std::span<const uint8_t> bytes) -> Status {
      failed = write_all(to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (!failed) return {};
      return bad_input("cannot write " + onnx::quote(path) + ": " + std::strerror(failed));
    };
    for (const MadeTensor& t : checkpoint.made) {
      if (!status) break;
      if (used.contains(t.offset))
        status = t.write(emit);
      else if (::lseek(to, static_cast<off_t>(t.length), SEEK_CUR) < 0)
        return errno;
    }
    return status ? 0 : failed ? failed : EINVAL;
  });
  INVAR_CHECK_OK(status);
  if (error) return bad_input("cannot write " + onnx::quote(path) + ": " + std::strerror(error));
  return {};
}

void keep_packed(Checkpoint& checkpoint) {
  for (const MadeTensor& m : checkpoint.made)
    if (m.packed && weights::fits_index(*m.packed)) checkpoint.tensors.at(m.name).file = weights::kIndexFile;
}

Status write_index(const Checkpoint& checkpoint, const std::set<uint64_t>& used, const std::string& path) {
  if (used.empty()) return {};
  std::vector<weights::PackedTensor> tensors;
  for (const MadeTensor& m : checkpoint.made) {
    if (!used.contains(m.offset)) continue;
    tensors.push_back(*m.packed);
    tensors.back().offset = m.offset, tensors.back().length = m.length;
  }
  return write_file(path, weights::print_index(tensors));
}

}  // namespace invar::checkpoint
