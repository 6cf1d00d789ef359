// RIFF WAVE: a list of chunks, of which "fmt " says what the samples in "data" are.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "audio/recording.h"
#include "base/endian.h"
#include "base/file/file.h"
#include "num/env.h"

namespace invar::audio {
namespace {

constexpr uint16_t kWhole = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr uint32_t kToTheEnd = 0xffffffff;  // of a writer that could not go back
constexpr double kMost = 65536;             // of a sample: no sum of its squares overflows

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  copy_little_endian(&value, bytes.data() + at, sizeof value, sizeof value);
  return value;
}

struct Format {
  uint16_t kind = 0, channels = 0, bits = 0;
  uint32_t rate = 0;
};

Result<Format> read_format(std::string_view chunk, const std::string& name) {
  if (chunk.size() < 16) return bad_input(name + ": the chunk 'fmt ' of this WAV file is cut off");
  Format f{number_at<uint16_t>(chunk, 0), number_at<uint16_t>(chunk, 2), number_at<uint16_t>(chunk, 14),
           number_at<uint32_t>(chunk, 4)};
  // The first two bytes of a GUID say what is meant.
  if (f.kind == kExtensible && chunk.size() >= 26) f.kind = number_at<uint16_t>(chunk, 24);
  const bool whole = f.kind == kWhole && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  if (!whole && !(f.kind == kFloat && (f.bits == 32 || f.bits == 64)))
    return not_covered(
        name + ": a WAV file of format " + std::to_string(f.kind) + " with " + std::to_string(f.bits) +
        " bits is not covered; PCM of 8, 16, 24 and 32 bits and floats are: ffmpeg -i FILE -c:a "
        "pcm_s16le -ar 16000 -ac 1 out.wav makes one");
  if (f.channels < 1 || f.rate < 1)
    return bad_input(name + ": a WAV file with " + std::to_string(f.channels) + " channels and " +
                     std::to_string(f.rate) + " samples a second");
  return f;
}

// One sample as binary64, which holds each of them.
double sample_at(std::string_view data, size_t at, const Format& f) {
  if (f.kind == kFloat) return f.bits == 32 ? number_at<float>(data, at) : number_at<double>(data, at);
  switch (f.bits) {
    case 8: return (static_cast<uint8_t>(data[at]) - 128) * 0x1p-7;
    case 16: return number_at<int16_t>(data, at) * 0x1p-15;
    case 32: return number_at<int32_t>(data, at) * 0x1p-31;
    default: break;
  }
  const uint32_t low = number_at<uint16_t>(data, at), high = static_cast<uint8_t>(data[at + 2]);
  return static_cast<int32_t>((high << 24) | (low << 8)) * 0x1p-31;
}

Result<Recording> read_samples(std::string_view data, const Format& f, const std::string& name, size_t most) {
  const size_t each = f.bits / 8, frame = each * f.channels;
  if (data.size() / frame > most) return too_many_samples(name, most);
  Recording r{f.rate, std::vector<float>(data.size() / frame)};
  for (size_t i = 0; i < r.samples.size(); ++i) {
    double sum = 0;
    for (size_t c = 0; c < f.channels; ++c) sum += sample_at(data, i * frame + c * each, f);
    const double mean = f.channels == 1 ? sum : sum / f.channels;
    if (!(std::abs(mean) <= kMost))
      return bad_input(name + ": sample " + std::to_string(i) +
                       " is no number, or above 65536 in magnitude: samples are from -1 to 1");
    r.samples[i] = static_cast<float>(mean);
  }
  return r;
}

constexpr FileKind kAudioFile{"an audio file", uint64_t{4} << 30, true};

// What other files begin with.
constexpr std::pair<std::string_view, const char*> kOthers[] = {
    {"OggS", "Ogg"},     {"ID3", "MP3"},   {"\xff\xfb", "MP3"},
    {"\xff\xf3", "MP3"}, {"RF64", "RF64"}, {"\x1a\x45\xdf\xa3", "Matroska"}};

}  // namespace

Error too_many_samples(const std::string& name, size_t most) {
  return not_covered(name + ": more than " + std::to_string(most) +
                     " samples: cut the recording into several files");
}

Result<Recording> read_wav(std::string_view file, const std::string& name, size_t most) {
  const num::ArithmeticEnv env;
  if (file.size() < 12 || file.substr(0, 4) != "RIFF" || file.substr(8, 4) != "WAVE")
    return bad_input(name + ": not a WAV file");
  std::optional<Format> format;
  for (size_t at = 12; at + 8 <= file.size();) {
    const std::string_view kind = file.substr(at, 4);
    const uint32_t size = number_at<uint32_t>(file, at + 4);
    const std::string_view rest = file.substr(at + 8), chunk = rest.substr(0, size);
    if (kind == "fmt ") {
      INVAR_TRY(format, read_format(chunk, name));
    }
    if (kind == "data") {
      if (!format) return bad_input(name + ": this WAV file has samples before it says what they are");
      if (size > rest.size() && size != kToTheEnd)
        return bad_input(name + ": the file ends after " + std::to_string(rest.size()) + " of " +
                         std::to_string(size) + " bytes of samples: it is cut off");
      return read_samples(chunk, *format, name, most);
    }
    if (size > rest.size()) break;
    at += 8 + size_t{size} + size % 2;
  }
  return bad_input(name + ": this WAV file has no samples (no chunk 'data')");
}

Result<Recording> recording_of(std::string_view file, const std::string& name, size_t most) {
  for (const auto& [begin, format] : kOthers)
    if (file.starts_with(begin))
      return not_covered(
          name + ": " + format +
          " is not covered, WAV and FLAC are: ffmpeg -i FILE -ar 16000 -ac 1 out.wav makes one");
  return file.starts_with("fLaC") ? read_flac(file, name, most) : read_wav(file, name, most);
}

Result<Recording> read_recording(const std::string& path) {
  INVAR_TRY(const std::string file, read_file(path, kAudioFile));
  return recording_of(file, path);
}

Digest digest_of(const Recording& r) {
  std::vector<char> bytes(r.samples.size() * sizeof(float));
  copy_little_endian(bytes.data(), r.samples.data(), bytes.size(), sizeof(float));
  return sha256(std::string_view(bytes.data(), bytes.size()));
}

}  // namespace invar::audio
