// An input of several files: they are joined by U+001E.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "fuzz/expect.h"

namespace invar {

inline std::vector<std::string_view> parts_of(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parts;
  for (size_t end; (end = rest.find('\x1e')) != rest.npos; rest.remove_prefix(end + 1))
    parts.push_back(rest.substr(0, end));
  parts.push_back(rest);
  return parts;
}

// A folder of this process, for readers of files.
inline const std::string& folder() {
  static const TemporaryFolder made = [] {
    const char* parent = std::getenv("TMPDIR");
    auto folder = TemporaryFolder::make(parent ? parent : "/tmp");
    if (!folder) defect(folder.error().message);
    return *std::move(folder);
  }();
  return made.path();
}

// Plain, without the flush to disk of write_file.
inline void put(const std::string& name, std::string_view content) {
  std::FILE* file = std::fopen((folder() + "/" + name).c_str(), "wb");
  if (!file || std::fwrite(content.data(), 1, content.size(), file) != content.size() || std::fclose(file))
    defect("cannot write " + name);
}

// A file of safetensors with this header. The bytes behind it count, but are not read: the file has
// a hole there.
inline void put_weights(const std::string& name, std::string_view header) {
  const uint64_t size = header.size();
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(size >> 8 * i);
  put(name, text + std::string(header));
  uint64_t last = 0;
  for (size_t at = 0; at < header.size(); ++at)
    if (header[at] >= '0' && header[at] <= '9') {
      uint64_t number = 0;
      for (; at < header.size() && header[at] >= '0' && header[at] <= '9' && number < 1 << 20; ++at)
        number = number * 10 + static_cast<uint64_t>(header[at] - '0');
      last = header.substr(at).starts_with(']') ? std::max(last, number) : last;
    }
  std::filesystem::resize_file(folder() + "/" + name, 8 + size + last);
}

}  // namespace invar
