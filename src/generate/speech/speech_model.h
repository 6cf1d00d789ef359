// What a checkpoint that hears says of its sources and of the tokens that its answers continue
// (spec/speech.md).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "audio/log_mel.h"
#include "base/status.h"
#include "base/text/json.h"

namespace invar::generate {

struct SpeechModel {
  int64_t bands = 0, frames = 0;               // of a source
  int32_t start = 0;                           // the decoder's first token
  std::map<std::string, int32_t> languages{};  // "en" -> id; none: the model knows one language
  std::map<std::string, int32_t> tasks{};      // transcribe, translate
  int32_t no_timestamps = -1;                  // the token after those; -1: there is none
  int32_t max_initial_timestamp = -1;          // of sampling.32; -1: there is none
  std::string language{}, task{"transcribe"};  // where nobody asks for others; language "": none

  int64_t samples() const { return frames * audio::kSamplesPerFrame; }  // of a source
  // What an answer continues (speech.7). "": nobody asks. Where it knows several languages and has
  // none, one of them holds the place that the model has yet to fill.
  Result<std::vector<int32_t>> answer_start(const std::string& asked, const std::string& asked_task,
                                            bool timestamps) const;
  // Whether these are such tokens, whatever the words are.
  bool is_answer_start(std::span<const int32_t> tokens, bool timestamps) const;
  bool has_timestamps() const { return no_timestamps >= 0; }
  int32_t timestamp_begin() const { return has_timestamps() ? no_timestamps + 1 : -1; }  // speech.11
  // The language whose token has the largest logit; of equals the one with the lowest id.
  int32_t loudest(std::span<const float> logits) const;
};
// `config` is config.json, `generation` generation_config.json. Checks that
// preprocessor_config.json describes the front end of speech.2 to speech.6.
Result<SpeechModel> read_speech(const std::string& folder, const json::Value& config,
                                const json::Value& generation, int32_t start);

}  // namespace invar::generate
