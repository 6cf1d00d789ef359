// A message between processes: numbers and bytes one after another, little-endian as the hosts that
// exchange them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace invar::run {

class Packet {
 public:
  Packet() = default;
  explicit Packet(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const { return bytes_; }

  void put(int64_t n) { append(&n, sizeof n); }
  void put(std::span<const std::byte> data) {
    put(static_cast<int64_t>(data.size()));
    append(data.data(), data.size());
  }
  void put(std::string_view text) { put(std::as_bytes(std::span(text))); }
  void put(std::span<const int> list) {
    put(static_cast<int64_t>(list.size()));
    for (int n : list) put(int64_t{n});
  }
  void put(const std::vector<std::string>& list) {
    put(static_cast<int64_t>(list.size()));
    for (const std::string& s : list) put(std::string_view(s));
  }

  // Take what was put, in its order. A part that is missing is 0 or empty; ok() is false from then.
  bool ok() const { return ok_; }
  int64_t number() {
    int64_t n = 0;
    const auto data = take(sizeof n);
    if (!data.empty()) std::memcpy(&n, data.data(), sizeof n);
    return n;
  }
  std::span<const std::byte> data() { return take(static_cast<uint64_t>(number())); }
  std::string text() {
    const auto all = data();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
  std::vector<int> numbers() {
    std::vector<int> list;
    for (int64_t i = 0, n = number(); i < n && ok_; ++i) list.push_back(static_cast<int>(number()));
    return list;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (int64_t i = 0, n = number(); i < n && ok_; ++i) list.push_back(text());
    return list;
  }

 private:
  void append(const void* data, size_t n) {
    const auto* const begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + n);
  }
  std::span<const std::byte> take(uint64_t n) {
    ok_ = ok_ && n <= bytes_.size() - at_;
    if (!ok_) return {};
    at_ += n;
    return std::span(bytes_).subspan(at_ - n, n);
  }

  std::vector<std::byte> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace invar::run
