// The table of a receipt's bound fields, which printing, hashing and reading follow
// (spec/receipt.md).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/json.h"
#include "receipt/receipt.h"

namespace invar::receipt {

// receipt.1: "invar-receipt 2" for the format 2; receipt.40: "invar-tensor-receipt 1" for
// kTensorFormat. 0: a format that this build does not know.
inline constexpr int kNewestFormat = 2;
std::string schema_of(int format);
int format_of(std::string_view schema);
inline constexpr std::string_view kSections[] = {"model", "program", "input", "output"};

template <class... T>
using AnyRef = std::variant<T& (*)(Receipt&)...>;

struct Field {
  std::string_view section, key;
  AnyRef<std::string, Digest, bool, int32_t, int64_t, uint64_t, float, std::vector<int32_t>,
         std::vector<std::vector<int32_t>>, std::vector<sample::LogitBias>, std::vector<std::string>,
         std::vector<Digest>, std::vector<TensorDigest>>
      ref;
  int since = 1;          // the first format that has the field
  bool optional = false;  // receipt.24: it stands only where its value is not that of `Receipt{}`
  bool salted = false;    // receipt.27: it tells of the prompt, so a salt, if there is one, hides it
  std::string path() const { return std::string(section) + "." + std::string(key); }
};
// The fields of a format, in the order of printing and of the leaves.
std::vector<Field> fields(int format);
// Whether the receipt has the member, a leaf and a digest of this field of its format.
bool stands(const Field&, const Receipt&);
// The fields that stand in a receipt.
std::vector<Field> fields(const Receipt&);

// The value as JSON: compact (what is hashed, receipt.4) or as printed, lists broken into lines.
enum class Style { compact, pretty };
std::string write(const Field&, const Receipt&, Style);
// Reads the value. If it is wrong, adds findings and returns false.
bool read(const Field&, const json::Value&, Receipt&, std::vector<Finding>&);

// Makes the value that of `Receipt{}`.
void clear(const Field&, Receipt&);
// receipt.27: a redacted receipt shows none of these.
bool may_be_withheld(const Field&);
inline constexpr std::string_view kSaltPath = "input.salt";

// receipt.5: the digest of one text; and of a field, salted or withheld as it may be.
Digest leaf(std::string_view path, std::string_view compact_json);
Digest leaf(const Field&, const Receipt&);
// "schema", then every field that stands: the leaves under receipt_hash and their names.
std::vector<Digest> leaves(const Receipt&);
std::vector<std::string> leaf_names(const Receipt&);
// The leaves of the execution section in ascending key order.
std::vector<Digest> execution_leaves(const std::map<std::string, std::string>& execution);

}  // namespace invar::receipt
