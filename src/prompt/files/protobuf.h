// The wire format of protocol buffers, as far as a SentencePiece model needs it
// (https://protobuf.dev/programming-guides/encoding/).
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace invar::prompt {

// The fields of one message, in order.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view message) : rest_(message) {}

  // Moves to the next field; false at the end or where the message is damaged.
  bool next() {
    uint64_t tag;
    if (rest_.empty() || !varint(tag)) return false;
    field_ = static_cast<uint32_t>(tag >> 3);
    value_ = 0, bytes_ = {};
    switch (tag & 7) {
      case 0: return varint(value_);
      case 1: return fixed(8);
      case 5: return fixed(4);
      case 2: {
        uint64_t length;
        if (!varint(length)) return false;
        if (length > rest_.size()) return damaged_ = true, false;
        bytes_ = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return true;
      }
      default: return damaged_ = true, false;
    }
  }
  bool damaged() const { return damaged_; }
  uint32_t field() const { return field_; }
  uint64_t number() const { return value_; }
  std::string_view bytes() const { return bytes_; }
  float real() const { return std::bit_cast<float>(static_cast<uint32_t>(value_)); }

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return damaged_ = true, false;
  }
  bool fixed(size_t size) {
    if (rest_.size() < size) return damaged_ = true, false;
    for (size_t i = 0; i < size; ++i)
      value_ |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << 8 * i;
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_, bytes_;
  uint32_t field_ = 0;
  uint64_t value_ = 0;
  bool damaged_ = false;
};

}  // namespace invar::prompt
