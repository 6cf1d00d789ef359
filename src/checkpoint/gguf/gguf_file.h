// The container of GGUF files, versions 2 and 3: metadata and the places of tensors. The bytes of
// tensors are not read. Every size and offset is checked before anything is allocated for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"

namespace invar::checkpoint {

// A value of the metadata. Texts lie in the mapped file.
struct GgufValue {
  enum Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
  Type type = u8;  // of a list, that of its elements
  bool is_list = false;
  uint64_t count = 1;      // of elements
  std::string_view bytes;  // of all elements; of one text without its length

  std::optional<uint64_t> size() const;  // of an integer that is not negative
  std::optional<double> number() const;  // of an integer or a real number
  std::optional<bool> flag() const;
  std::optional<std::string_view> string() const;
  std::vector<std::string_view> strings() const;       // of a list of texts, else nothing
  std::optional<std::vector<double>> numbers() const;  // of a number or a list of them
};

struct GgufTensor {
  int type = 0;                // ggml_type
  std::vector<int64_t> shape;  // row-major: GGUF writes the dimension along a row first
  int file = 0;                // index into Gguf::files
  uint64_t offset = 0;         // in the file
  uint64_t length = 0;         // 0 where the type is not read
};

struct Gguf {
  std::string path;                                        // as it was given
  std::vector<std::string> files;                          // its own name, or those of all parts in order
  std::vector<MappedFile> maps;                            // of `files`
  std::map<std::string, GgufValue, std::less<>> metadata;  // of the first part
  std::map<std::string, GgufTensor, std::less<>> tensors;
  std::vector<uint64_t> header_bytes;  // per file, before the first tensor

  const GgufValue* find(std::string_view key) const;
};

// Opens the file, and with the first of several (NAME-00001-of-00003.gguf) the others beside it.
Result<Gguf> open_gguf(const std::string& path);

}  // namespace invar::checkpoint
