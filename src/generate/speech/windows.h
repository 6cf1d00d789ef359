// A recording as prompts of a model that hears: a window of 30 seconds each (speech.9).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audio/recording.h"
#include "base/status.h"
#include "generate/requests/request.h"

namespace invar::generate {

// bad_input: the model does not hear.
Result<const SpeechModel*> speech_of(const Model&);
// A file, converted to the rate of models. not_covered: a rate that cannot be.
Result<std::shared_ptr<const audio::Recording>> read_speech_recording(const std::string& path);
// The same of its content. not_covered: it has more than `most` samples, or would have them.
Result<std::shared_ptr<const audio::Recording>> speech_recording_of(std::string_view file,
                                                                    const std::string& name, size_t most);
// The windows of the recording, of which `receipt` has the receipts: r.json, or r.1.json, r.2.json
// and so on. bad_input: the model does not hear.
Result<std::vector<Prompt>> windows_of(const Model&, const std::shared_ptr<const audio::Recording>&,
                                       const std::string& receipt);
// The same of windows by timestamps (speech.12): the window with this number, from 1 on.
Prompt window_at(const std::shared_ptr<const audio::Recording>&, int64_t first, const std::string& receipt,
                 size_t number);
// A request whose one token is the language of the recording of another one (speech.8), for a
// scheduler that computes other requests, too.
Request hearing_of(const SpeechModel&, const Request&);
// The features of the window that begins at a sample.
std::vector<float> features_of(const SpeechModel&, const audio::Recording&, int64_t first);

}  // namespace invar::generate
