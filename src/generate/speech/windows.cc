#include "generate/speech/windows.h"

#include <algorithm>

#include "audio/log_mel.h"
#include "audio/resample.h"

namespace invar::generate {

// At the rate of models.
static Result<std::shared_ptr<const audio::Recording>> converted(audio::Recording recording,
                                                                 const std::string& path, size_t most) {
  if (recording.samples.empty()) return bad_input(path + ": no samples in it");
  if (recording.rate != audio::kSpeechRate) {
    if (!audio::is_convertible(recording.rate))
      return not_covered(
          path + ": " + std::to_string(recording.rate) +
          " samples a second are not covered; 8,000 to 192,000 as the field has them are: ffmpeg "
          "-i FILE -ar 16000 -ac 1 out.wav converts it");
    const double seconds =
        static_cast<double>(recording.samples.size()) / static_cast<double>(recording.rate);
    if (seconds * audio::kSpeechRate > static_cast<double>(most))
      return audio::too_many_samples(path + ", at 16,000 a second", most);
    recording.samples = audio::resampled(recording.samples, recording.rate);
    recording.rate = audio::kSpeechRate;
  }
  recording.digest = audio::digest_of(recording);  // once: each window's receipt has it
  return std::make_shared<const audio::Recording>(std::move(recording));
}

Result<std::shared_ptr<const audio::Recording>> read_speech_recording(const std::string& path) {
  INVAR_TRY(audio::Recording recording, audio::read_recording(path));
  return converted(std::move(recording), path, audio::kMostSamples);
}

Result<std::shared_ptr<const audio::Recording>> speech_recording_of(std::string_view file,
                                                                    const std::string& name, size_t most) {
  INVAR_TRY(audio::Recording recording, audio::recording_of(file, name, most));
  return converted(std::move(recording), name, most);
}

Result<const SpeechModel*> speech_of(const Model& model) {
  if (model.folder.speech) return &*model.folder.speech;
  return bad_input("a recording: " + model.folder.identity.name +
                   " does not hear: give it text, or take a model that does, such as openai/whisper-tiny");
}

static Prompt window(const std::shared_ptr<const audio::Recording>& recording, int64_t first) {
  Prompt p;
  p.recording = recording, p.first_sample = first;
  p.name = "the recording from " + std::to_string(first / audio::kSpeechRate) + " s on";
  return p;
}

Prompt window_at(const std::shared_ptr<const audio::Recording>& recording, int64_t first,
                 const std::string& receipt, size_t number) {
  Prompt p = window(recording, first);
  p.receipt_path = numbered_receipt(receipt, number);
  return p;
}

Result<std::vector<Prompt>> windows_of(const Model& model,
                                       const std::shared_ptr<const audio::Recording>& recording,
                                       const std::string& receipt) {
  INVAR_TRY(const SpeechModel* const speech, speech_of(model));
  std::vector<Prompt> prompts;
  for (int64_t first = 0; first < static_cast<int64_t>(recording->samples.size()); first += speech->samples())
    prompts.emplace_back(window(recording, first)).receipt_path = receipt;
  return with_own_receipts(std::move(prompts));
}

Request hearing_of(const SpeechModel& speech, const Request& of) {
  Request hearing = of;
  hearing.decoder_tokens = {speech.start};
  hearing.max_new_tokens = 1;
  hearing.params = {};
  std::vector<int32_t>& languages = hearing.params.processors.allowed_token_ids;
  for (const auto& [name, id] : speech.languages) languages.push_back(id);
  std::ranges::sort(languages);
  return hearing;
}

std::vector<float> features_of(const SpeechModel& speech, const audio::Recording& recording, int64_t first) {
  const auto begin = std::min(static_cast<size_t>(first), recording.samples.size());
  return audio::log_mel(std::span(recording.samples).subspan(begin), speech.bands, speech.frames);
}

}  // namespace invar::generate
