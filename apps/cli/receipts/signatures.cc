// invar keygen, sign, redact, seal: what is made of receipts without a model.
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/file/file.h"
#include "commands.h"
#include "console.h"
#include "generate/verify/verify.h"
#include "outputs/folders.h"
#include "receipt/batch.h"
#include "receipt/seal.h"
#include "signature/key_file.h"

namespace invar::cli {
namespace {

namespace fs = std::filesystem;

Result<std::vector<signature::PrivateKey>> private_keys(const std::vector<std::string>& paths) {
  std::vector<signature::PrivateKey> keys;
  for (const std::string& path : paths) {
    INVAR_TRY(keys.emplace_back(), signature::read_private_key(path));
  }
  return keys;
}

// Reads a valid batch. The error is the first finding.
Result<receipt::Batch> valid_batch(const std::string& text, const std::string& path) {
  receipt::Batch batch;
  INVAR_TRY(const std::vector<receipt::Finding> f, receipt::validate_batch(text, path, &batch));
  if (f.empty()) return batch;
  return bad_input(path + ": not a valid batch: " + f.front().field + ": expected " + f.front().expected +
                   ", found " + f.front().found);
}

template <class Sealed>  // a Receipt or a Batch
Result<std::string> with_signatures(Sealed sealed, const std::vector<signature::PrivateKey>& keys) {
  for (const signature::PrivateKey& key : keys) INVAR_CHECK_OK(receipt::sign(sealed, key));
  return receipt::print(sealed);
}

Status do_keygen(const KeyCommand& c) {
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("keygen", c.path));
  INVAR_TRY(const signature::PrivateKey key, signature::make_key());
  INVAR_CHECK_OK(signature::write_key_pair(c.path, key));
  const std::string id = to_hex(key.public_key);
  return write_stdout(c.json ? line_of({{"public_key", id}, {"path", c.path}}) : id + "\n");
}

// Each file is replaced whole, after all keys have been read.
Status do_sign(const SealCommand& c) {
  INVAR_TRY(const std::vector<signature::PrivateKey> keys, private_keys(c.keys));
  for (const std::string& path : c.receipts) {
    std::error_code ec;
    if (fs::exists(path, ec) && !fs::is_regular_file(path, ec))
      return bad_input(path + ": not a file that a signed receipt can replace: give the receipt's file");
    INVAR_TRY(const std::string text, generate::read_receipt(path));
    std::string made;
    if (receipt::is_batch(text)) {
      INVAR_TRY(receipt::Batch batch, valid_batch(text, path));
      INVAR_TRY(made, with_signatures(std::move(batch), keys));
    } else {
      INVAR_TRY(receipt::Receipt r, generate::valid_receipt(path));
      INVAR_TRY(made, with_signatures(std::move(r), keys));
    }
    INVAR_CHECK_OK(write_file(path, made));
    for (const signature::PrivateKey& key : keys) {
      const std::string id = to_hex(key.public_key);
      INVAR_CHECK_OK(write_stdout(c.json ? line_of({{"public_key", id}, {"path", path}})
                                         : "signed by " + id + "  " + path_for_stdout(path) + "\n"));
    }
  }
  return {};
}

// A receipt that the output replaced would be lost, and with it the salt of its prompt.
Status expect_another_file(const std::string& output, const std::string& receipt) {
  std::error_code ec;
  if (!fs::equivalent(output, receipt, ec)) return {};
  return bad_input(output + ": is the receipt " + receipt + ", which would be lost: choose another --output");
}

Status do_redact(const SealCommand& c) {
  const std::string& path = c.receipts.front();
  INVAR_TRY(const receipt::Receipt r, generate::valid_receipt(path));
  auto redacted = receipt::redact(r);
  if (!redacted) return Error{redacted.error().code, path + ": " + redacted.error().message};
  INVAR_CHECK_OK(expect_another_file(c.output, path));
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--output", c.output));
  INVAR_CHECK_OK(write_file(c.output, receipt::print(*redacted)));
  if (r.finish_reason == "length")
    Console(c.json).note("salt", "the answer ended at its limit of " + std::to_string(r.tokens.size()) +
                                     " tokens: if that is what the prompt left of a context, it tells how "
                                     "many tokens the prompt has");
  const std::string hash = to_hex(receipt::receipt_hash(*redacted));
  return write_stdout(c.json ? line_of({{"receipt_hash", hash}, {"path", c.output}}) : hash + "\n");
}

// The receipt's path from the batch's folder on.
Result<std::string> name_in_batch(const std::string& receipt, const std::string& batch) {
  std::error_code ec;
  const fs::path folder = fs::weakly_canonical(fs::absolute(batch, ec).parent_path(), ec);
  const fs::path file = fs::absolute(receipt, ec);
  const std::string name =
      (fs::weakly_canonical(file.parent_path(), ec) / file.filename()).lexically_relative(folder).string();
  if (ec || !receipt::is_name_in_batch(name))
    return bad_input(receipt + ": lies outside of the folder of " + batch +
                     ": a batch names receipts beside or below it");
  return name;
}

Status do_seal(const SealCommand& c) {
  INVAR_TRY(const std::vector<signature::PrivateKey> keys, private_keys(c.keys));
  receipt::Batch batch;
  std::set<std::string> names;
  for (const std::string& path : c.receipts) {
    INVAR_TRY(const receipt::Receipt r, generate::valid_receipt(path));
    INVAR_TRY(const std::string name, name_in_batch(path, c.output));
    INVAR_CHECK_OK(expect_another_file(c.output, path));
    if (!names.insert(name).second) return bad_input(path + ": given twice");
    batch.receipts.push_back({name, receipt::receipt_hash(r)});
  }
  const Digest hash = receipt::batch_hash(batch);
  INVAR_TRY(const std::string made, with_signatures(std::move(batch), keys));
  INVAR_CHECK_OK(write_file(c.output, made));
  return write_stdout(c.json ? line_of({{"batch_hash", to_hex(hash)}, {"path", c.output}})
                             : to_hex(hash) + "\n");
}

}  // namespace

int keygen(const KeyCommand& c) {
  return exit_code(do_keygen(c));
}
int sign(const SealCommand& c) {
  return exit_code(do_sign(c));
}
int redact(const SealCommand& c) {
  return exit_code(do_redact(c));
}
int seal(const SealCommand& c) {
  return exit_code(do_seal(c));
}

}  // namespace invar::cli
