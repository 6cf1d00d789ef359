// Texts -> vectors, pairs of texts -> scores, each with its receipt: what `invar embed` and `invar
// rerank` do (spec/encoder.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model_folder.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "receipt/receipt.h"
#include "run/function.h"

namespace invar::generate {

struct EncoderText {
  std::string text;                   // UTF-8
  std::optional<std::string> second;  // of a pair
  std::string receipt_path = {};      // "": no file of a receipt
  std::string name = {};              // what errors call it
  std::optional<Error> problem = {};  // of a line of a file: why there is no such text
  bool sealed = false;                // the output has its receipt
};
// A file of texts: of .jsonl, where each line is a string or an object with the one member `key`;
// else each line is a text. A bad line is a text with a problem. Lines without a text count as bad,
// but for blank lines of .jsonl, which are skipped, and the end of the file.
Result<std::vector<EncoderText>> read_text_file(const std::string& path, const std::string& key);

struct EncoderOptions {
  std::optional<std::string> prompt_name;  // absent: the model's default_prompt_name
  bool pairs = false;                      // the model must give one score of two texts
  int64_t batch_size = 32;                 // texts of one length in a step; never changes a bit
};

struct EncoderOutput {
  std::vector<float> values;                // the vector, or one score
  int64_t tokens = 0, cut = 0;              // tokens that were computed, and that were too many
  std::string receipt_hash;                 // "" without a receipt
  std::optional<receipt::Receipt> receipt;  // of a text that is `sealed`
  std::optional<Error> problem;             // why there are no values
};

class EncoderModel {
 public:
  // Finds or makes the plan of the checkpoint and loads it. not_covered: the model is no encoder
  // that is covered, or not of the kind that is wanted.
  static Result<EncoderModel> open(const ModelOptions&, const ExecutionOptions&, const EncoderOptions&,
                                   Observer&);
  EncoderModel(EncoderModel&&) noexcept;
  ~EncoderModel();
  // One output for each text, in their order. A text that cannot be read is the problem of its
  // output alone.
  Result<std::vector<EncoderOutput>> compute(const std::vector<EncoderText>&, Observer&);
  std::string isa() const;
  // The tokens of a text, and how many more were too many. On any thread.
  struct Count {
    int64_t tokens = 0, cut = 0;
  };
  Result<Count> count(const EncoderText&) const;
  int64_t size() const;  // of a vector; 1 of a score
  // Makes this number of the first numbers of each vector, of length 1 again where the model's are
  // (encoder.13). Receipts are those of whole vectors. bad_input: the model does not declare it.
  Status shorten(std::vector<EncoderOutput>&, int64_t dimensions) const;
  Status check_dimensions(int64_t dimensions) const;
  int64_t positions() const;  // tokens that a text may have; 0: no file says it
  // The fields of model and program of every receipt.
  const receipt::Receipt& described() const;

  struct Impl;  // generate/encoder/encoder.cc

 private:
  explicit EncoderModel(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// The outputs with values from the highest score down: equal scores keep their order, NaN is last.
std::vector<size_t> ranking(const std::vector<EncoderOutput>&);

// What a model makes of texts. none: it is no encoder.
enum class EncoderKind { none, vectors, scores };
Result<EncoderKind> encoder_kind(const ModelLocation&);

// The inputs of the model's program for one text: what a receipt of it binds.
Result<run::Function::NamedTensors> encoder_inputs(const ModelOptions&, const EncoderOptions&,
                                                   const EncoderText&, Observer&);

}  // namespace invar::generate
