// An answer with timestamps as pieces of the recording (spec/speech.md speech.11 to speech.14).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generate/model/model_folder.h"

namespace invar::generate {

struct Segment {
  int64_t begin = 0, end = 0;  // samples of the recording
  std::vector<int32_t> tokens;
  std::string text;
};

struct Segmented {
  std::vector<Segment> segments;
  int64_t next = 0;  // the sample that the next window begins with; -1: there is none
};

// Of the answer to the window that begins with the sample `first` of a recording of so many
// samples.
Segmented segments_of(const ModelFolder&, std::span<const int32_t> answer,
                      std::span<const int32_t> stop_tokens, int64_t first, int64_t samples);

// speech.14: whether a list for people has it.
bool is_shown(const Segment&);
// "00:01:02,345"; hours only where they are needed or asked for.
std::string time_text(int64_t sample, char point, bool hours);
// "[00:00.000 --> 00:05.440]  text\n"
std::string timed_line(const Segment&);
// The cue of SubRip with this number, from 1 on, and that of WebVTT; kWebVtt comes before the
// first.
std::string srt_of(const Segment&, size_t number);
std::string vtt_of(const Segment&);
inline constexpr const char* kWebVtt = "WEBVTT\n\n";

}  // namespace invar::generate
