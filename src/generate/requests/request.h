// A request to a model: a prompt, how its tokens are chosen, when they end, and what becomes of the
// receipt. Files of prompts and messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/recording.h"
#include "base/file/disk_reservation.h"
#include "base/status.h"
#include "generate/model/model.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "generate/settings/decoding_params.h"
#include "run/session.h"
#include "signature/signature.h"

namespace invar::generate {

struct Prompt {
  std::string text;                         // UTF-8
  std::optional<std::string> receipt_path;  // absent: no file is written
  // The object of chat.1 (spec/chat.md) as JSON, which the model's chat template makes the text of;
  // "": the text is the prompt.
  std::string chat = {};
  std::string name = {};              // what errors call it; "" = prompt, prompt 1, ...
  uint64_t stream = 0;                // of the answer, beyond that of the settings (sampling.24)
  std::optional<Error> problem = {};  // of a line of a file: why there is no such prompt
  // Of a model that hears, in the place of a text: the window of a recording that begins here.
  std::shared_ptr<const audio::Recording> recording = {};
  int64_t first_sample = 0;
};
// JSON lines: a string, a list of messages, or an object with "prompt" or with "messages" and other
// members of chat.1 in each. The receipts of several are r.1.json, r.2.json, ... A bad line is a
// prompt with a problem.
Result<std::vector<Prompt>> read_prompt_file(const std::string& path, const std::string& receipt_path,
                                             const ChatOptions& = {});
// Each prompt n times, drawn from n streams; the receipts of r.json are r.1.json, r.2.json, ...
std::vector<Prompt> each_of_n(const std::vector<Prompt>&, uint64_t n);
// r.json -> r.1.json
std::string numbered_receipt(const std::string& path, uint64_t number);
// The receipts of several prompts, all named r.json, are r.1.json, r.2.json, ...
std::vector<Prompt> with_own_receipts(std::vector<Prompt>);
// Messages, or an object of chat.1, and the user's options -> the object of chat.1.
Result<std::string> chat_input(std::string_view json, const std::string& name, const ChatOptions&);
// The content of a file of messages or tools.
Result<std::string> read_chat_file(const std::string& path);
// The file of --tools into the options; "": none.
Status read_tools(const std::string& path, ChatOptions&);

// Options that several requests may have in common.
struct RequestOptions {
  SamplingOptions sampling;
  bool record_model_path = false;  // into the receipt's execution section
  std::vector<std::string> sign;   // files of the private keys that sign the receipt (receipt.26)
  bool salt_prompt = false;        // so that the prompt can be withheld later (receipt.27)
  Digest previous{};               // receipt_hash of the turn before (receipt.25); zeros: none
  // Where nobody says how many tokens an answer has at most, it has all that fit into the memory.
  bool fill_memory = false;
  bool prompt_logprobs = false;  // by a scheduler that computes prompts in pieces
  // Of a model that hears several languages: "en", and transcribe or translate. "": the language
  // that the model hears at first, and transcribe.
  std::string language = {}, task = {};
  bool timestamps = false;  // of such a model: speech.11
};

// The same, checked against a model: keys are read, settings are those of the checkpoint where
// nobody gave them.
struct RequestSettings {
  static Result<std::shared_ptr<const RequestSettings>> make(const Model&, RequestOptions);

  RequestOptions options;
  DecodingParams decoding;
  std::vector<signature::PrivateKey> keys;
};

// Space on the disk for receipts that are not written yet, of one folder.
struct ReceiptSpace {
  DiskReservation space;
  uint64_t bytes = 0;
};

// A prompt that a model can answer. It owns nothing of the model, and may be made before weights
// are loaded.
struct Request {
  // Checks all that may be wrong with it before anything is computed. `which` is what errors call
  // it where the prompt has no name.
  static Result<Request> make(const Model&, Prompt, std::shared_ptr<const RequestSettings>,
                              const std::string& which = "prompt");
  // The two steps of it: the text of a chat and the tokens, and what depends on their number.
  static Result<std::vector<int32_t>> encode(const Model&, Prompt&, const std::string& which = "prompt");
  static Result<Request> make(const Model&, Prompt, std::vector<int32_t> tokens,
                              std::shared_ptr<const RequestSettings>, const std::string& which = "prompt");
  // Positions of prompt and answer in the memory.
  int64_t positions() const { return static_cast<int64_t>(continued().size()) + max_new_tokens; }
  // The tokens that the answer continues, and what an encoder reads; empty: the model has none.
  std::span<const int32_t> continued() const { return decoder_tokens.empty() ? tokens : decoder_tokens; }
  run::Source source() const {
    if (!features.empty()) return {.features = features};
    return {.tokens = decoder_tokens.empty() ? std::span<const int32_t>() : tokens};
  }
  // It has no answer, and prompt.problem says why.
  bool skipped() const { return prompt.problem.has_value(); }
  Status take_recording(const Model&);
  // The answer has at most so many new tokens, too; what has no effect then is off (receipt.21).
  void limit(int64_t most);

  Prompt prompt;  // as the model gets it: of a chat what the template made
  std::shared_ptr<const RequestSettings> settings;
  std::vector<int32_t> tokens = {};
  std::vector<int32_t> decoder_tokens = {};  // those of the model's folder
  std::vector<float> features = {};          // of a recording
  bool lacks_language = false;               // Engine::hear_languages() has yet to put it in
  int64_t max_new_tokens = 0;
  sample::Params params = {};
  std::shared_ptr<ReceiptSpace> space = {};
  uint64_t receipt_bytes = 0;  // about so many of the space, as long as the receipt is not written
};

// Requests of these prompts. A prompt of several that is wrong is a request that is skipped; an
// error where all of them are. Notes tell what the chat template leaves out.
Result<std::vector<Request>> make_requests(const Model&, std::vector<Prompt>,
                                           const std::shared_ptr<const RequestSettings>&, Observer&);

// Takes the space of the receipts' files, which lie in one folder. The model is compiled.
Status reserve_receipts(const Model&, std::span<Request>);

}  // namespace invar::generate
