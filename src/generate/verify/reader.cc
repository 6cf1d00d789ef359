// Checks the claims of a receipt or a batch without the model: structure, hashes, who signed, what
// is withheld, which turn came before.
#include <algorithm>

#include "base/operation_set.h"
#include "generate/verify/verify.h"

namespace invar::generate {
namespace {

Verdict valid(Verdict v) {
  v.verdict = v.ok() ? "VALID" : "NOT VALID";
  return v;
}

std::string start_of(const Digest& d) {
  return to_hex(d).substr(0, 16);
}

std::string joined_names(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

}  // namespace

// receipt.26
void Reader::check_signers(Verdict& v, const std::vector<receipt::KeySignature>& signatures,
                           const InBatch* batch) const {
  std::vector<signature::PublicKey> keys;
  for (const receipt::KeySignature& s : signatures) keys.push_back(s.key);
  std::vector<std::string> shown;
  bool asked_for_all = true;
  const auto show = [&](const signature::PublicKey& key, const char* of) {
    const bool asked_for = std::find(required_.begin(), required_.end(), key) != required_.end();
    shown.push_back(to_hex(key) + of + (asked_for ? " (required)" : " (a key that nobody asked for)"));
    asked_for_all = asked_for_all && asked_for;
  };
  for (const auto& key : keys) show(key, "");
  if (batch)
    for (const auto& key : batch->keys) keys.push_back(key), show(key, " of its batch");
  for (const auto& key : required_)
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      v.findings.push_back({"signatures", "one by the key " + to_hex(key),
                            shown.empty() ? "no signature" : "signatures by " + joined_names(shown)});
  if (!shown.empty()) v.compared.push_back({"signed", "by " + joined_names(shown), !asked_for_all});
}

// receipt.25
void Reader::check_turn(Verdict& v, const receipt::Receipt& r) {
  if (r.previous != Digest{}) {
    const auto before = turns_.find(r.previous);
    std::string said = to_hex(r.previous) + ": not among the receipts before this one, not looked at";
    bool continues = false;
    if (before != turns_.end()) {
      const std::vector<int32_t>& turn = before->second.tokens;
      const bool withheld = before->second.withheld || !r.withheld.empty();
      const bool begins = turn.size() <= r.prompt_tokens.size() &&
                          std::equal(turn.begin(), turn.end(), r.prompt_tokens.begin());
      said = before->second.name + ", " + start_of(r.previous) + ": " +
             (withheld ? "a prompt is withheld, so tokens were not compared"
              : begins ? "its prompt and answer begin this prompt, token for token"
                       : "its tokens do not begin this prompt, as where a chat template rewrites turns");
      continues = begins && !withheld;
    }
    v.compared.push_back({"previous", said, !continues});
  }
  std::vector<int32_t> tokens = r.prompt_tokens;
  tokens.insert(tokens.end(), r.tokens.begin(), r.tokens.end());
  turns_[receipt::receipt_hash(r)] = {v.receipt, std::move(tokens), !r.withheld.empty()};
}

Result<Verdict> Reader::read(std::string_view text, const std::string& name, receipt::Receipt& claimed,
                             const InBatch* batch) {
  Verdict v;
  v.receipt = name;
  INVAR_TRY(v.findings, receipt::validate(text, name, &claimed));
  v.about = about(claimed);
  if (!v.ok()) return v;
  const Digest hash = receipt::receipt_hash(claimed);
  v.receipt_hash = to_hex(hash);
  if (batch && batch->receipt_hash != hash)
    v.findings.push_back({"receipt_hash", "the batch's " + to_hex(batch->receipt_hash), to_hex(hash)});
  check_signers(v, claimed.signatures, batch);
  if (v.ok()) check_turn(v, claimed);
  return v;
}

Result<Verdict> Reader::validate(std::string_view text, const std::string& name, const InBatch* batch) {
  receipt::Receipt claimed;
  INVAR_TRY(Verdict v, read(text, name, claimed, batch));
  if (!v.ok()) return valid(std::move(v));
  const OperationSet set = operation_set_from(claimed.operation_set).value();  // validate knows it
  v.add("structure", "every bound field matches its digest, the digests match the hash");
  std::vector<std::string> withheld;
  for (const auto& [path, digest] : claimed.withheld) withheld.push_back(path);
  if (!withheld.empty())
    v.add_caveat("withheld", joined_names(withheld) + ": only their digests are here (receipt.27)");
  v.add_caveat("note", !withheld.empty() ? "nobody can recompute it without the prompt"
                       : set == OperationSet::reproducible
                           ? "nothing was recomputed: `invar verify` does that"
                       : set == OperationSet::any
                           ? "operation set " + claimed.operation_set + ": no run can verify it"
                           : "operation set " + claimed.operation_set +
                                 ": `invar verify` can repeat it on the same hardware and software alone");
  return valid(std::move(v));
}

Result<Verdict> Reader::validate_batch(std::string_view text, const std::string& name,
                                       receipt::Batch& batch) const {
  Verdict v;
  v.receipt = name;
  INVAR_TRY(v.findings, receipt::validate_batch(text, name, &batch));
  if (!v.ok()) return valid(std::move(v));
  v.receipt_hash = to_hex(receipt::batch_hash(batch));
  v.add("batch", std::to_string(batch.receipts.size()) + " receipts: their root is the batch's hash");
  check_signers(v, batch.signatures, nullptr);
  return valid(std::move(v));
}

Result<Verdict> validate(std::string_view text, const std::string& name) {
  return Reader().validate(text, name);
}

Result<receipt::Receipt> valid_receipt(const std::string& path) {
  INVAR_TRY(const std::string text, read_receipt(path));
  if (receipt::is_batch(text))
    return bad_input(path + ": a batch of receipts, where one receipt is needed: give one that it names");
  receipt::Receipt r;
  INVAR_TRY(const std::vector<receipt::Finding> findings, receipt::validate(text, path, &r));
  if (findings.empty()) return r;
  return bad_input(path + ": not a valid receipt: " + receipt::text_of(findings.front()));
}

void judge_file(const std::string& path, const Reader& reader, const Judge& judge, const Report& report) {
  const auto text = read_receipt(path);
  if (!text) return report(path, text.error());
  if (!receipt::is_batch(*text)) return report(path, judge(*text, path, nullptr));
  receipt::Batch batch;
  const Result<Verdict> verdict = reader.validate_batch(*text, path, batch);
  report(path, verdict);
  if (!verdict || !verdict->ok()) return;
  InBatch said;
  for (const receipt::KeySignature& s : batch.signatures) said.keys.push_back(s.key);
  const std::string folder = path.substr(0, path.rfind('/') + 1);  // npos + 1 = 0
  for (const receipt::Batch::Entry& entry : batch.receipts) {
    said.receipt_hash = entry.receipt_hash;
    const std::string file = folder + entry.name;
    const auto one = read_receipt(file);
    report(file, one ? judge(*one, file, &said) : one.error());
  }
}

}  // namespace invar::generate
