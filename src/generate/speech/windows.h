// A recording as prompts of a model that hears: a window of 30 seconds each (speech.9).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audio/recording.h"
#include "base/status.h"
#include "generate/requests/request.h"

namespace invar::generate {

// bad_input: the model does not hear.
Result<const SpeechModel*> speech_of(const Model&);
// A file, converted to the rate of models. not_covered: a rate that cannot be.
Result<std::shared_ptr<const audio::Recording>> read_speech_recording(const std::string& path);
// The windows of the recording, of which `receipt` has the receipts: r.json, or r.1.json, r.2.json
// and so on. bad_input: the model does not hear.
Result<std::vector<Prompt>> windows_of(const Model&, const std::shared_ptr<const audio::Recording>&,
                                       const std::string& receipt);
// The features of the window that begins at a sample.
std::vector<float> features_of(const SpeechModel&, const audio::Recording&, int64_t first);

}  // namespace invar::generate
