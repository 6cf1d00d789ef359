// The checkpoint that a receipt is checked against, and how it was found.
#pragma once

#include <string>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "generate/model/model_folder.h"
#include "generate/options.h"
#include "receipt/receipt.h"

namespace invar::generate {

struct FoundModel {
  ModelLocation location;
  std::string source;  // who named the folder: the user, the Hugging Face cache, an earlier run, the receipt
};

// Looks in this order: the model that the user names, if any; the receipt's name and revision in
// the local Hugging Face cache; the folder of an earlier run here with these weights; a model of
// the receipt's name that is installed with the program; the path in the receipt, which its sender
// chose. Only a model that the user names is downloaded, of the revision that the receipt claims.
Result<FoundModel> find_model(const ModelOptions& wanted, const receipt::Receipt& claimed, Observer&);

// The folder of the adapter of the receipt: the one that the user names, else one that a run here
// used and whose files are still those of the receipt; "": the receipt's model has none. bad_input:
// it has one, which is not found.
Result<std::string> find_adapter(const ModelOptions& wanted, const receipt::Receipt& claimed);

// Compares the claimed name and revision of a model whose digests are equal: a finding where the
// Hugging Face cache knows the model under another name, else what to print behind "named".
struct NameCheck {
  std::vector<receipt::Finding> findings;
  std::string text;
  bool checked = false;
};
NameCheck check_name(const ModelLocation&, const receipt::Receipt& claimed);

// Remembers, for find_model, that a run here loaded these weights from this folder; the same, for
// find_adapter, of an adapter's digest. A cache that
// cannot be written is no error.
void remember_checkpoint(const Digest& weights, const std::string& folder);

}  // namespace invar::generate
