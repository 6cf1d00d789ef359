// Fuzzes what strangers send: receipts, batches and keys. Every input must give no crash and errors
// in plain single lines. What is valid must print as a text that is valid, too, and has the same
// hash; a salted receipt must keep it when it is redacted. Run by tools/fuzz.sh.
#include <algorithm>
#include <cstdint>
#include <string>

#include "fuzz/expect.h"
#include "receipt/batch.h"
#include "receipt/seal.h"
#include "signature/key_file.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace invar {
namespace {

void expect(const std::vector<receipt::Finding>& findings) {
  for (const receipt::Finding& f : findings)
    if (f.field.empty() || f.expected.empty() || f.found.empty()) defect("an empty finding at " + f.field);
}

void expect_same(const receipt::Receipt& r, const Digest& hash, const char* what) {
  receipt::Receipt back;
  const std::string text = receipt::print(r);
  const auto found = receipt::validate(text, "again", &back);
  if (!found) defect(std::string(what) + " is not read: " + found.error().message);
  if (!found->empty()) defect(std::string(what) + " is not valid: " + found->front().field);
  if (receipt::receipt_hash(back) != hash) defect(std::string(what) + " has another hash");
  if (receipt::print(back) != text) defect(std::string(what) + " changes when it is read");
}

void try_receipt(std::string_view text) {
  receipt::Receipt r;
  const auto found = receipt::validate(text, "input", &r);
  if (!found) return expect(found.error());
  expect(*found);
  if (!found->empty()) return;
  const Digest hash = receipt::receipt_hash(r);
  expect_same(r, hash, "a printed receipt");
  if (const auto redacted = receipt::redact(r))
    expect_same(*redacted, hash, "a redacted receipt");
  else
    expect(redacted.error());
}

void try_batch(std::string_view text) {
  receipt::Batch batch, back;
  const auto found = receipt::validate_batch(text, "input", &batch);
  if (!found) return expect(found.error());
  expect(*found);
  if (!found->empty()) return;
  const std::string printed = receipt::print(batch);
  const auto again = receipt::validate_batch(printed, "again", &back);
  if (!receipt::is_batch(printed) || !again || !again->empty() || receipt::print(back) != printed)
    defect("a batch changes when it is read");
  for (const receipt::Batch::Entry& e : batch.receipts)
    if (e.name.starts_with('/') || ("/" + e.name + "/").find("/../") != std::string::npos)
      defect("a batch leaves its folder: " + e.name);
}

void try_keys(std::string_view text) {
  const auto seed = signature::seed_from_pem(text, "input");
  const auto key = signature::public_key_from_pem(text, "input");
  if (!seed) expect(seed.error());
  if (!key) expect(key.error());
  if (seed && key) defect("a key that is private and public");
  if (seed && *signature::seed_from_pem(signature::private_pem(*seed), "again") != *seed)
    defect("a private key changes when it is read");
  if (key && *signature::public_key_from_pem(signature::public_pem(*key), "again") != *key)
    defect("a public key changes when it is read");
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  invar::try_receipt(text);
  invar::try_batch(text);
  invar::try_keys(text);
  return 0;
}

// Half of the changed receipts and batches get hashes that fit, as a forger would make them: the
// rules behind the hashes are reached in no other way. They keep no signatures, which would not
// hold.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2) return size;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  invar::receipt::Receipt r;
  invar::receipt::Batch b;
  std::string made;
  if (invar::receipt::is_batch(text)) {
    if (!invar::receipt::validate_batch(text, "input", &b)) return size;
    b.signatures.clear();
    made = invar::receipt::print(b);
  } else {
    if (!invar::receipt::validate(text, "input", &r)) return size;
    r.signatures.clear();
    made = invar::receipt::print(r);
  }
  if (made.size() > max_size) return size;
  std::copy(made.begin(), made.end(), data);
  return made.size();
}
