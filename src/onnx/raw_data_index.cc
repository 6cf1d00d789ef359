// Walks the protobuf wire format along ModelProto.graph.initializer.raw_data and copies all other
// fields.
#include "onnx/raw_data_index.h"

#include "onnx/proto.h"

namespace invar::onnx {
namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::TensorProto;

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Iterates over the fields of a message. Groups, which ONNX does not use, are malformed.
struct FieldCursor {
  std::string_view rest;
  bool malformed = false;
  // The field that next() found:
  int number = 0;
  std::string_view encoded = {}, content = {};  // with the tag; the payload of a length-delimited field

  bool next() {
    if (rest.empty() || malformed) return false;
    const std::string_view from = rest;
    const uint64_t tag = varint();
    number = static_cast<int>(tag >> 3), content = {};
    switch (tag & 7) {
      case kVarint: varint(); break;
      case kFixed64: skip(8); break;
      case kFixed32: skip(4); break;
      case kBytes: {
        const uint64_t n = varint();
        content = rest.substr(0, n);
        skip(n);
        break;
      }
      default: malformed = true;
    }
    encoded = from.substr(0, from.size() - rest.size());
    return !malformed && tag >> 3 > 0 && tag >> 32 == 0;
  }

 private:
  void skip(uint64_t n) {
    malformed |= n > rest.size();
    if (!malformed) rest.remove_prefix(n);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    malformed = true;
    return 0;
  }
};

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
void append_bytes(std::string& to, int field, std::string_view content) {
  append_varint(to, static_cast<uint64_t>(field) << 3 | kBytes);
  append_varint(to, content.size());
  to += content;
}

// Rewrites a ModelProto in one pass.
struct Rewriter {
  const char* begin;
  const std::string& file_name;
  bool rewrote = false, malformed = false;

  // Externalizes a tensor that has only type, shape, name, documentation and one raw_data; copies
  // any other.
  void tensor(std::string_view message, std::string& to) {
    std::string head;
    std::string_view data;
    bool plain = true;
    FieldCursor f{message};
    while (f.next()) {
      if (f.number == TensorProto::kRawDataFieldNumber) {
        plain &= !data.data() && f.content.data();
        data = f.content;
        continue;
      }
      plain &= f.number == TensorProto::kDimsFieldNumber || f.number == TensorProto::kDataTypeFieldNumber ||
               f.number == TensorProto::kNameFieldNumber || f.number == TensorProto::kDocStringFieldNumber;
      if (plain) head += f.encoded;
    }
    malformed |= f.malformed || !f.rest.empty();
    if (!plain || data.size() <= kInlineLimit)
      return append_bytes(to, GraphProto::kInitializerFieldNumber, message);
    TensorProto external;
    external.set_data_location(TensorProto::EXTERNAL);
    const auto entry = [&external](const char* key, const std::string& value) {
      auto* e = external.add_external_data();
      e->set_key(key), e->set_value(value);
    };
    entry("location", file_name);
    entry("offset", std::to_string(data.data() - begin));
    entry("length", std::to_string(data.size()));
    append_bytes(to, GraphProto::kInitializerFieldNumber, head + external.SerializeAsString());
    rewrote = true;
  }
  // Copies a message. `rewrite` appends the fields with this number.
  template <class Rewrite>
  void copy(std::string_view message, int number, std::string& to, Rewrite rewrite) {
    FieldCursor f{message};
    while (f.next())
      if (f.number == number && f.content.data())
        rewrite(f.content);
      else
        to += f.encoded;
    malformed |= f.malformed || !f.rest.empty();
  }
  void model(std::string_view message, std::string& to) {
    copy(message, ModelProto::kGraphFieldNumber, to, [&](std::string_view graph) {
      std::string made;
      copy(graph, GraphProto::kInitializerFieldNumber, made, [&](std::string_view t) { tensor(t, made); });
      append_bytes(to, ModelProto::kGraphFieldNumber, made);
    });
  }
};

}  // namespace

std::optional<std::string> externalize_raw_data(std::string_view model, const std::string& file_name) {
  Rewriter r{model.data(), file_name};
  std::string made;
  r.model(model, made);
  if (!r.rewrote || r.malformed) return std::nullopt;
  return made;
}

}  // namespace invar::onnx
