#include "generate/speech/segments.h"

#include <algorithm>
#include <cstdio>

namespace invar::generate {
namespace {

constexpr int64_t kFrame = audio::kSamplesPerFrame, kTime = 2 * kFrame;  // samples

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kWhite);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) + 1 - begin);
}

// A text that ends no cue early.
std::string cue_text(const Segment& s) {
  std::string text(trimmed(s.text));
  for (size_t at = 0; (at = text.find("-->", at)) != text.npos;) text.replace(at, 3, "->");
  return text;
}

std::string span_text(const Segment& s, char point, bool hours) {
  hours |= s.end / audio::kSpeechRate >= 3600;
  return time_text(s.begin, point, hours) + " --> " + time_text(s.end, point, hours);
}

}  // namespace

Segmented segments_of(const ModelFolder& model, std::span<const int32_t> a, std::span<const int32_t> stops,
                      int64_t first, int64_t samples) {
  const int32_t times = model.speech->timestamp_begin();
  const auto is_time = [&](size_t i) { return a[i] >= times; };
  const auto sample_of = [&](int32_t token) { return first + (token - times) * kTime; };
  const int64_t frames = std::max<int64_t>(1, samples / kFrame);
  const int64_t left = std::min(model.speech->frames, frames - first / kFrame);
  if (!a.empty() && std::ranges::count(stops, a.back()) > 0) a = a.first(a.size() - 1);
  Segmented made;
  const auto add = [&](int64_t begin, int64_t end, std::span<const int32_t> tokens) {
    std::vector<int32_t> words;
    std::ranges::copy_if(tokens, std::back_inserter(words), [&](int32_t t) { return t < times; });
    made.segments.push_back({begin, end, {tokens.begin(), tokens.end()}, model.tokenizer.decode(words)});
  };
  const bool ends = a.size() > 1 && is_time(a.size() - 1) && !is_time(a.size() - 2);
  made.next = first + left * kFrame;
  size_t done = 0;  // tokens of segments
  const auto cut = [&](size_t end) {
    add(sample_of(a[done]), sample_of(a[end - 1]), a.subspan(done, end - done));
    done = end;
  };
  for (size_t i = 1; i < a.size(); ++i)
    if (is_time(i - 1) && is_time(i)) cut(i);
  if (done == 0) {
    const auto last = std::ranges::find_if(a.rbegin(), a.rend(), [&](int32_t t) { return t >= times; });
    add(first, last == a.rend() || *last == times ? made.next : sample_of(*last), a);
  } else if (ends) {
    cut(a.size());
  } else {
    made.next = sample_of(a[done - 1]);
  }
  if (made.next / kFrame >= frames) made.next = -1;
  return made;
}

bool is_shown(const Segment& s) {
  return s.begin < s.end && !trimmed(s.text).empty();
}

std::string time_text(int64_t sample, char point, bool hours) {
  const int64_t ms = sample * 1000 / audio::kSpeechRate, seconds = ms / 1000;
  char text[48];
  const auto part = [](int64_t n) { return static_cast<long long>(n); };
  int n = 0;
  if (hours) n = std::snprintf(text, sizeof text, "%02lld:", part(seconds / 3600));
  const int64_t minutes = hours ? seconds / 60 % 60 : seconds / 60;
  std::snprintf(text + n, sizeof text - static_cast<size_t>(n), "%02lld:%02lld%c%03lld", part(minutes),
                part(seconds % 60), point, part(ms % 1000));
  return text;
}

std::string timed_line(const Segment& s) {
  return "[" + span_text(s, '.', false) + "]  " + std::string(trimmed(s.text)) + "\n";
}

std::string srt_of(const Segment& s, size_t number) {
  return std::to_string(number) + "\n" + span_text(s, ',', true) + "\n" + cue_text(s) + "\n\n";
}

std::string vtt_of(const Segment& s) {
  return span_text(s, '.', false) + "\n" + cue_text(s) + "\n\n";
}

}  // namespace invar::generate
