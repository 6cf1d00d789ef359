// Printing and hashing receipts (spec/receipt.md).
#include "receipt/receipt.h"

#include <algorithm>

#include "base/endian.h"
#include "base/hash/sha256_blocks.h"
#include "receipt/fields/fields.h"
#include "receipt/signatures/signatures.h"

namespace invar::receipt {

// receipt.7
Digest commit(std::span<const float> logits) {
  if (kLittleEndian) return sha256(logits.data(), logits.size_bytes());
  Sha256 h;
  uint8_t buffer[4096];
  for (; !logits.empty(); logits = logits.subspan(std::min(logits.size(), sizeof buffer / sizeof(float)))) {
    const size_t bytes = std::min(logits.size_bytes(), sizeof buffer);
    copy_little_endian(buffer, logits.data(), bytes, sizeof(float));
    h.update(buffer, bytes);
  }
  return h.finish();
}

void commit(std::span<const std::span<const float>> rows, std::span<Digest> digests) {
  std::vector<std::span<const std::byte>> bytes;
  for (size_t i = 0; i < rows.size(); ++i)
    if (kLittleEndian)
      bytes.push_back(std::as_bytes(rows[i]));
    else
      digests[i] = commit(rows[i]);
  if (kLittleEndian) sha256_of_many(bytes, digests);
}

Digest leaf(std::string_view path, std::string_view compact_json) {
  return Sha256().update(path).update("=").update(compact_json).finish();
}

Digest leaf(const Field& f, const Receipt& r) {
  const std::string path = f.path();
  if (const auto it = r.withheld.find(path); it != r.withheld.end()) return it->second;
  Sha256 hash;
  hash.update(path).update("=").update(write(f, r, Style::compact));
  if (f.salted && r.salt != Digest{}) {
    const Digest salt = Sha256().update(r.salt.data(), r.salt.size()).update(path).finish();
    hash.update(salt.data(), salt.size());
  }
  return hash.finish();
}

std::vector<std::string> leaf_names(const Receipt& r) {
  std::vector<std::string> names{"schema"};
  for (const Field& f : fields(r)) names.push_back(f.path());
  return names;
}

std::vector<Digest> leaves(const Receipt& r) {
  std::vector<Digest> d{leaf("schema", json::quote(schema_of(r.format)))};
  for (const Field& f : fields(r)) d.push_back(leaf(f, r));
  return d;
}

std::vector<Digest> execution_leaves(const std::map<std::string, std::string>& execution) {
  std::vector<Digest> d;
  for (const auto& [key, value] : execution) d.push_back(leaf("execution." + key, json::quote(value)));
  return d;
}

Digest receipt_hash(const Receipt& r) {
  return merkle_root(leaves(r));
}

std::string print(const Receipt& r) {
  std::string out = "{\n  \"schema\": " + json::quote(schema_of(r.format));
  auto member = [&](int depth, std::string_view key, std::string_view value, bool first = false) {
    out.append(first ? "" : ",")
        .append("\n")
        .append(2 * depth, ' ')
        .append(json::quote(key))
        .append(": ")
        .append(value);
  };
  for (std::string_view section : kSections) {
    member(1, section, "{");
    bool first = true;
    for (const Field& f : fields(r))
      if (f.section == section)
        member(2, f.key, r.withheld.contains(f.path()) ? "null" : write(f, r, Style::pretty),
               std::exchange(first, false));
    out += "\n  }";
  }
  auto digests = [&](std::string_view section, const std::vector<std::string>& names,
                     const std::vector<Digest>& d) {
    member(1, section, "{");
    for (size_t i = 0; i < d.size(); ++i) member(2, names[i], '"' + to_hex(d[i]) + '"', i == 0);
    out += d.empty() ? "}" : "\n  }";
  };
  const std::vector<Digest> bound = leaves(r);
  digests("digests", leaf_names(r), bound);
  member(1, "receipt_hash", '"' + to_hex(merkle_root(bound)) + '"');
  if (!r.signatures.empty()) member(1, "signatures", print(r.signatures));

  member(1, "execution", "{");
  std::vector<std::string> keys;
  for (const auto& [key, value] : r.execution) {
    member(2, key, json::quote(value), keys.empty());
    keys.push_back(key);
  }
  out += keys.empty() ? "}" : "\n  }";
  const std::vector<Digest> informational = execution_leaves(r.execution);
  digests("execution_digests", keys, informational);
  member(1, "execution_hash", '"' + to_hex(merkle_root(informational)) + '"');
  return out + "\n}\n";
}

}  // namespace invar::receipt
