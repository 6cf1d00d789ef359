#include "receipt/batch.h"

#include <algorithm>
#include <set>

#include "receipt/fields/fields.h"
#include "receipt/fields/members.h"
#include "receipt/signatures/signatures.h"

namespace invar::receipt {

using Findings = std::vector<Finding>;
using json::Value;
static constexpr std::string_view kSchema = "invar-receipt-batch 1";

bool is_batch(std::string_view text) {
  if (text.find("invar-receipt-batch") == text.npos) return false;  // a receipt is not parsed twice
  const auto top = json::parse(text, "");
  const Value* schema = top ? find(*top, "schema") : nullptr;
  return schema && schema->text.starts_with("invar-receipt-batch");
}

Digest batch_hash(const Batch& b) {
  std::vector<Digest> leaves{leaf("schema", json::quote(kSchema))};
  for (const Batch::Entry& e : b.receipts) leaves.push_back(e.receipt_hash);
  return merkle_root(leaves);
}

std::string print(const Batch& b) {
  std::string out = "{\n  \"schema\": " + json::quote(kSchema) + ",\n  \"receipts\": [";
  for (const Batch::Entry& e : b.receipts)
    out.append(out.ends_with('[') ? "" : ",")
        .append("\n    {\"name\": " + json::quote(e.name) + ", \"receipt_hash\": \"" +
                to_hex(e.receipt_hash) + "\"}");
  out += "\n  ],\n  \"batch_hash\": \"" + to_hex(batch_hash(b)) + "\"";
  if (!b.signatures.empty()) out += ",\n  \"signatures\": " + print(b.signatures);
  return out + "\n}\n";
}

Status sign(Batch& b, const signature::PrivateKey& key) {
  return add(b.signatures, kSignedBatch, batch_hash(b), key);
}

// No path leaves the folder: a batch that a stranger made opens nothing else of this machine.
bool is_name_in_batch(std::string_view name) {
  if (name.find('\0') != name.npos) return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

static void read_entries(const Value& list, Batch& b, Findings& f) {
  std::set<std::string> names;
  for (size_t i = 0; i < list.items.size() && !full(f); ++i) {
    const Value& one = list.items[i];
    const std::string at = "receipts[" + std::to_string(i) + "]";
    if (one.kind != Value::object) {
      f.push_back({at, "an object", std::string(json::name_of(one.kind))});
      continue;
    }
    members(one, at + ".", {"name", "receipt_hash"}, f);
    const Value* name = member(one, "name", at + ".name", f);
    if (name && (name->kind != Value::string || !is_name_in_batch(name->text)))
      f.push_back({at + ".name", "the path of a file in the batch's folder or below it",
                   json::quote(json::brief(name->text))});
    else if (name && !names.insert(name->text).second)
      f.push_back({at + ".name", "each name once", json::quote(json::brief(name->text))});
    const std::string hash_path = at + ".receipt_hash";
    const auto hash = digest_of(member(one, "receipt_hash", hash_path, f), hash_path, f);
    b.receipts.push_back({name ? name->text : "", hash.value_or(Digest{})});
  }
}

Result<Findings> validate_batch(std::string_view text, std::string_view name, Batch* out) {
  INVAR_TRY(const Value top, json::parse(text, name));
  Findings f;
  Batch b;
  members(top, "", {"schema", "receipts", "batch_hash", "signatures"}, f);
  const Value* schema = member(top, "schema", "schema", f);
  if (schema && (schema->kind != Value::string || schema->text != kSchema))
    f.push_back({"schema", json::quote(kSchema), json::quote(json::brief(schema->text))});
  const Value* list = member(top, "receipts", "receipts", f);
  if (list && (list->kind != Value::array || list->items.empty()))
    f.push_back({"receipts", "a list with at least one receipt",
                 list->kind == Value::array ? "an empty list" : std::string(json::name_of(list->kind))});
  else if (list)
    read_entries(*list, b, f);
  const auto hash = digest_of(member(top, "batch_hash", "batch_hash", f), "batch_hash", f);
  read_signatures(top, b.signatures, f);
  if (f.empty() && *hash != batch_hash(b))
    f.push_back({"batch_hash", to_hex(batch_hash(b)) + " (from the receipts)", to_hex(*hash), true});
  if (f.empty()) check_signatures(b.signatures, kSignedBatch, *hash, f);
  if (out) *out = std::move(b);
  return bounded(std::move(f));
}

}  // namespace invar::receipt
