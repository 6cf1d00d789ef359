#include "receipt/signatures/signatures.h"

#include <algorithm>
#include <set>

#include "receipt/fields/members.h"

namespace invar::receipt {

using Findings = std::vector<Finding>;
using json::Value;

static std::string message(std::string_view kind, const Digest& hash) {
  return std::string(kind) + to_hex(hash);
}

std::string print(const std::vector<KeySignature>& signatures) {
  std::string out = "[";
  for (const KeySignature& s : signatures)
    out.append(out.size() > 1 ? "," : "")
        .append("\n    {\"key\": \"" + to_hex(s.key) + "\", \"signature\": \"" +
                signature::to_hex(s.signature) + "\"}");
  return out + "\n  ]";
}

void read_signatures(const Value& top, std::vector<KeySignature>& out, Findings& f) {
  const Value* list = find(top, "signatures");
  if (!list) return;
  if (list->kind != Value::array || list->items.empty())
    return f.push_back(
        {"signatures", "a list with a signature, or no such member",
         list->kind == Value::array ? "an empty list" : std::string(json::name_of(list->kind))});
  std::set<signature::PublicKey> keys;
  for (size_t i = 0; i < list->items.size() && !full(f); ++i) {
    const Value& one = list->items[i];
    const std::string at = "signatures[" + std::to_string(i) + "]";
    if (one.kind != Value::object) {
      f.push_back({at, "an object", std::string(json::name_of(one.kind))});
      continue;
    }
    members(one, at + ".", {"key", "signature"}, f);
    const auto key = digest_of(member(one, "key", at + ".key", f), at + ".key", f);
    const Value* text = member(one, "signature", at + ".signature", f);
    const auto signature =
        text && text->kind == Value::string ? signature::signature_from_hex(text->text) : std::nullopt;
    if (text && !signature)
      f.push_back({at + ".signature", "128 lower-case hexadecimal digits in quotes", "something else"});
    if (!key || !signature) continue;
    if (!keys.insert(*key).second) f.push_back({at + ".key", "each key once", to_hex(*key)});
    out.push_back({*key, *signature});
  }
}

void check_signatures(const std::vector<KeySignature>& signatures, std::string_view kind, const Digest& hash,
                      Findings& f) {
  for (size_t i = 0; i < signatures.size() && !full(f); ++i) {
    const auto good = signature::verify(signatures[i].key, signatures[i].signature, message(kind, hash));
    if (good && *good) continue;
    const std::string at = "signatures[" + std::to_string(i) + "].signature";
    f.push_back({at, "one of " + to_hex(hash) + " by the key " + to_hex(signatures[i].key),
                 good ? "another" : good.error().message});
  }
}

Status add(std::vector<KeySignature>& signatures, std::string_view kind, const Digest& hash,
           const signature::PrivateKey& key) {
  if (std::any_of(signatures.begin(), signatures.end(),
                  [&](const KeySignature& s) { return s.key == key.public_key; }))
    return {};
  INVAR_TRY(const signature::Signature made, signature::sign(key, message(kind, hash)));
  signatures.push_back({key.public_key, made});
  return {};
}

}  // namespace invar::receipt
