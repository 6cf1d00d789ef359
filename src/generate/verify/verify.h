// A receipt -> a verdict: by its hashes alone (validate), or computed again on this machine
// (verify).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audio/recording.h"
#include "base/file/temporary_file.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "dispute/trace.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "receipt/batch.h"
#include "receipt/receipt.h"
#include "signature/signature.h"

namespace invar::json {
struct Value;
}
namespace invar::generate {

// A comparison. A caveat says what the verdict does not: every form of a verdict shows it, the row
// of one receipt among several, too.
struct Compared {
  std::string what, how;
  bool caveat = false;
};
struct Verdict {
  std::string verdict;       // "VERIFIED", "NOT VERIFIED", ...; only what holds on any machine is VERIFIED
  std::string receipt;       // its name
  std::string receipt_hash;  // "" where the receipt does not say one that holds
  std::vector<receipt::Finding> findings;  // empty: it holds
  std::vector<Compared> compared;
  std::vector<std::pair<std::string, std::string>> about = {};  // what the receipt says: about()
  bool ok() const { return findings.empty(); }
  void add(std::string what, std::string how) { compared.push_back({std::move(what), std::move(how)}); }
  void add_caveat(std::string what, std::string how) {
    compared.push_back({std::move(what), std::move(how), true});
  }
};
// The verdict as lines for people, safe for a terminal.
std::string report(const Verdict&);
// The JSON of `invar verify --json` and the page: a verdict, and a receipt that was refused.
json::Value json_of(const Verdict&);
json::Value json_of(const std::string& receipt, const Error&);
// Its caveats alone, a line each.
std::string caveats(const Verdict&);
// Words after the word of a verdict, where the plan was given and nothing shows that it is of the
// program that it names (program.7).
inline constexpr const char* kByGivenPlan = " BY A GIVEN PLAN";

// The content of a receipt in a few short lines for people: the model, the prompt, the answer, the
// sampling; of tensors their names. Nothing of it is checked. What the receipt lacks is left out.
std::vector<std::pair<std::string, std::string>> about(const receipt::Receipt&);
// The role and the text of each message of a chat; no message, where that is not readable.
std::vector<std::pair<std::string, std::string>> messages_of(const receipt::Receipt&);

// The content of a receipt's file.
Result<std::string> read_receipt(const std::string& path);

// The receipt in a file. bad_input: there is none, or it is not VALID.
Result<receipt::Receipt> valid_receipt(const std::string& path);

// A receipt as the batch names it.
struct InBatch {
  Digest receipt_hash;
  std::vector<signature::PublicKey> keys;  // that signed the batch, and so this receipt
};

// Reads receipts one after another: a later one may be the next turn of an earlier one's
// conversation (receipt.25).
class Reader {
 public:
  // Every receipt and every batch must have a signature of each of the required keys.
  explicit Reader(std::vector<signature::PublicKey> required = {}) : required_(std::move(required)) {}

  // Structure, ranges, hashes and signatures of the receipt `text` (JSON), without the model.
  // `name` is what messages call it. Errors: what is no receipt at all; not_covered: a build
  // without OpenSSL shall check a signature.
  Result<Verdict> validate(std::string_view text, const std::string& name, const InBatch* = nullptr);
  // The same of a batch, without its receipts.
  Result<Verdict> validate_batch(std::string_view text, const std::string& name, receipt::Batch&) const;
  // Does what validate() does, without a verdict's word: for whoever goes on.
  Result<Verdict> read(std::string_view text, const std::string& name, receipt::Receipt& claimed,
                       const InBatch* = nullptr);

 private:
  struct Earlier {
    std::string name;
    std::vector<int32_t> tokens;  // of prompt and answer
    bool withheld = false;
  };
  void check_signers(Verdict&, const std::vector<receipt::KeySignature>&, const InBatch*) const;
  void check_turn(Verdict&, const receipt::Receipt&);

  std::vector<signature::PublicKey> required_;
  std::map<Digest, Earlier> turns_;  // of valid receipts, by hash
};
Result<Verdict> validate(std::string_view text, const std::string& name);

// Judges what lies in a file: a receipt, or a batch (receipt.28) and then each receipt that it
// names beside it. Reports each in turn.
using Judge = std::function<Result<Verdict>(std::string_view text, const std::string& name, const InBatch*)>;
using Report = std::function<void(const std::string& name, const Result<Verdict>&)>;
void judge_file(const std::string& path, const Reader&, const Judge&, const Report&);

// The model and program fields of a receipt of this model (receipt.2), with every weight hashed.
// Nothing of a task folder is used. Of an encoder those of a receipt of tensors (receipt.40).
Result<receipt::Receipt> describe_model(const ModelOptions&, Observer&);

// Finds and compares the model, compiles it, and computes every token of the answer again
// (receipt.14 to receipt.18). model.model_name may be empty: then the receipt and what this user
// ran before say where the model lies. Errors: the model is not found, or the operation set lets
// nobody verify here (not_covered).
Result<Verdict> verify(std::string_view text, const std::string& name, const ModelOptions&,
                       const ExecutionOptions&, Observer&, const receipt::StepSelection& = {});

// The same for several receipts one after another. A model is found, compiled and loaded once.
class Verifier {
 public:
  // The observer outlives this object. A selection of steps says less: the verdict is then SPOT
  // CHECKED, and `compared` says what a check of so many steps may miss.
  Verifier(ModelOptions, ExecutionOptions, Observer&, receipt::StepSelection = {},
           std::vector<signature::PublicKey> required = {});
  ~Verifier();
  // Of receipts of recordings (receipt.46): the one that they are to be about.
  void hear(std::shared_ptr<const audio::Recording>);
  // not_covered, too: its prompt is withheld.
  Result<Verdict> verify(std::string_view text, const std::string& name, const InBatch* = nullptr);
  Reader& reader() { return reader_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Reader reader_;
};

// The subject of traces and disputes: a valid receipt, and its model as it is found and compiled
// here.
struct DisputedRun {
  dispute::Subject subject;
  std::vector<receipt::Finding> other_model;    // where the model here is not the receipt's
  std::function<std::string(int32_t)> text_of;  // a token in quotes, as this model's tokenizer has it
  // The subject's files and known digests belong to these.
  std::shared_ptr<TemporaryFolder> temporary;
  std::shared_ptr<DigestCache> hashed;
};
// Errors: an invalid receipt, a model that is not found; not_covered: a weaker operation set.
Result<DisputedRun> open_disputed(std::string_view text, const std::string& name, const ModelOptions&,
                                  const ExecutionOptions&, Observer&);

}  // namespace invar::generate
