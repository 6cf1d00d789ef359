// FLAC (RFC 9639): each frame has its subframes, one a channel, of a predictor and the Rice
// codes of what it leaves. Sums of both CRCs are checked, the MD5 of the stream is not.
#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "audio/recording.h"
#include "num/env.h"

namespace invar::audio {
namespace {

constexpr size_t kMostChannels = 8;
using Block = std::vector<int64_t>;

class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  bool at_end() const { return at_ >= 8 * bytes_.size(); }
  size_t byte() const { return (at_ + 7) / 8; }
  void align() { at_ = 8 * byte(); }
  uint64_t take(int count) {  // at most 56
    uint64_t value = 0;
    if (at_ + static_cast<size_t>(count) > 8 * bytes_.size()) return failed_ = true, 0;
    for (; count > 0;) {
      const int left = 8 - static_cast<int>(at_ % 8), n = std::min(left, count);
      const auto octet = static_cast<uint8_t>(bytes_[at_ / 8]);
      value = value << n | ((octet >> (left - n)) & ((1u << n) - 1));
      at_ += static_cast<size_t>(n), count -= n;
    }
    return value;
  }
  int64_t take_signed(int count) {
    if (count == 0) return 0;
    return static_cast<int64_t>(take(count) << (64 - count)) >> (64 - count);
  }
  int64_t unary() {  // zeros before a one
    int64_t zeros = 0;
    while (!failed_ && take(1) == 0) ++zeros;
    return zeros;
  }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// The remainder of the bytes, of 8 or 16 bits.
uint32_t crc(std::string_view bytes, int bits, uint32_t polynomial) {
  const uint32_t top = 1u << (bits - 1), mask = top | (top - 1);
  uint32_t sum = 0;
  for (const char c : bytes) {
    sum ^= static_cast<uint32_t>(static_cast<uint8_t>(c)) << (bits - 8);
    for (int i = 0; i < 8; ++i) sum = (sum & top ? sum << 1 ^ polynomial : sum << 1) & mask;
  }
  return sum;
}

struct Stream {
  int64_t rate = 0;
  size_t channels = 0;
  int bits = 0;
};
struct Frame {
  size_t size = 0;
  size_t assignment = 0;  // 8 to 10: two channels, one of which is a difference
};

// The residual behind the first `order` samples.
void read_residual(Bits& in, size_t order, Block& block) {
  const uint64_t method = in.take(2);
  const auto partitions = size_t{1} << in.take(4);
  if (method > 1 || block.size() % partitions != 0 || block.size() / partitions < order) return in.fail();
  const int width = method == 0 ? 4 : 5;
  const uint64_t raw = (1u << width) - 1;
  for (size_t p = 0, i = order; p < partitions && !in.failed(); ++p) {
    const size_t end = (p + 1) * (block.size() / partitions);
    const uint64_t parameter = in.take(width);
    const int plain = parameter == raw ? static_cast<int>(in.take(5)) : -1;
    for (; i < end && !in.failed(); ++i) {
      if (plain >= 0) {
        block[i] = in.take_signed(plain);
        continue;
      }
      const auto high = static_cast<uint64_t>(in.unary()), low = in.take(static_cast<int>(parameter));
      const uint64_t folded = high << parameter | low;
      block[i] = static_cast<int64_t>(folded >> 1) ^ -static_cast<int64_t>(folded & 1);
    }
  }
}

// Adds to each sample what the predictor makes of those before it.
void predict(std::span<const int64_t> factors, int shift, Block& block) {
  for (size_t i = factors.size(); i < block.size(); ++i) {
    int64_t sum = 0;
    for (size_t j = 0; j < factors.size(); ++j)
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) +
                                 static_cast<uint64_t>(factors[j]) * static_cast<uint64_t>(block[i - 1 - j]));
    block[i] = static_cast<int64_t>(static_cast<uint64_t>(block[i]) + static_cast<uint64_t>(sum >> shift));
  }
}

void read_predicted(Bits& in, size_t order, bool fixed, int bits, Block& block) {
  static constexpr std::array<int64_t, 4> kFixed[] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
  if (order > block.size() || (fixed && order > 4)) return in.fail();
  for (size_t i = 0; i < order; ++i) block[i] = in.take_signed(bits);
  std::vector<int64_t> factors;
  int shift = 0;
  if (fixed) {
    factors.assign(kFixed[order].begin(), kFixed[order].begin() + static_cast<int64_t>(order));
  } else {
    const int precision = static_cast<int>(in.take(4)) + 1;
    shift = static_cast<int>(in.take_signed(5));
    if (precision == 16 || shift < 0) return in.fail();
    for (size_t i = 0; i < order; ++i) factors.push_back(in.take_signed(precision));
  }
  read_residual(in, order, block);
  if (!in.failed()) predict(factors, shift, block);
}

void read_subframe(Bits& in, int bits, Block& block) {
  if (in.take(1) != 0) return in.fail();
  const uint64_t kind = in.take(6);
  const int wasted = in.take(1) ? static_cast<int>(std::min<int64_t>(in.unary(), 64)) + 1 : 0;
  bits -= wasted;
  if (bits < 1) return in.fail();
  if (kind == 0)
    std::ranges::fill(block, in.take_signed(bits));
  else if (kind == 1)
    std::ranges::generate(block, [&] { return in.take_signed(bits); });
  else if (kind >= 8 && kind <= 12)
    read_predicted(in, kind - 8, /*fixed=*/true, bits, block);
  else if (kind >= 32)
    read_predicted(in, kind - 31, /*fixed=*/false, bits, block);
  else
    in.fail();
  for (int64_t& x : block) x = static_cast<int64_t>(static_cast<uint64_t>(x) << wasted);
}

// The frame's header; what it says beside must be what the stream says.
Frame read_header(Bits& in, std::string_view file, const Stream& s) {
  static constexpr std::array<int, 8> kSizes = {0, 8, 12, -1, 16, 20, 24, 32};
  const size_t begin = in.byte();
  Frame f;
  if (in.take(15) != 0x7ffc) in.fail();  // the code of a beginning, and a bit that is 0
  in.take(1);
  const uint64_t size = in.take(4), rate = in.take(4);
  f.assignment = in.take(4);
  const int bits = kSizes[in.take(3)];
  if (in.take(1) != 0 || size == 0 || rate == 15 || f.assignment > 10 || (bits != 0 && bits != s.bits))
    in.fail();
  if ((f.assignment < 8 ? f.assignment + 1 : 2) != s.channels) in.fail();
  const int more = std::countl_one(static_cast<uint8_t>(in.take(8)));  // the frame's number, as UTF-8
  if (more == 1 || more > 7) in.fail();
  for (int i = 1; i < more; ++i) in.take(8);
  if (size == 1)
    f.size = 192;
  else if (size <= 5)
    f.size = size_t{576} << (size - 2);
  else if (size <= 7)
    f.size = in.take(size == 6 ? 8 : 16) + 1;
  else
    f.size = size_t{256} << (size - 8);
  if (rate >= 12) in.take(rate == 12 ? 8 : 16);
  if (in.failed()) return f;
  const uint32_t sum = crc(file.substr(begin, in.byte() - begin), 8, 0x07);
  if (in.take(8) != sum) in.fail();
  return f;
}

// Two channels of which one is left, right or their mean, and one their difference.
void separate(size_t assignment, std::vector<Block>& channels) {
  for (size_t i = 0; assignment >= 8 && i < channels[0].size(); ++i) {
    int64_t &a = channels[0][i], &b = channels[1][i];
    if (assignment == 8) {
      b = a - b;
    } else if (assignment == 9) {
      a = a + b;
    } else {
      const int64_t twice = a * 2 + (b & 1);
      a = (twice + b) >> 1, b = (twice - b) >> 1;
    }
  }
}

// One frame's samples, appended to the recording.
void read_frame(Bits& in, std::string_view file, const Stream& s, Recording& r) {
  const size_t begin = in.byte();
  const Frame f = read_header(in, file, s);
  std::vector<Block> channels(s.channels);
  for (size_t c = 0; c < s.channels && !in.failed(); ++c) {
    channels[c].resize(f.size);
    const bool difference = f.assignment == 9 ? c == 0 : f.assignment >= 8 && c == 1;
    read_subframe(in, s.bits + (difference ? 1 : 0), channels[c]);
  }
  in.align();
  if (in.failed()) return;
  const uint32_t sum = crc(file.substr(begin, in.byte() - begin), 16, 0x8005);
  if (in.take(16) != sum) return in.fail();
  separate(f.assignment, channels);
  const int64_t most = int64_t{1} << (s.bits - 1);
  for (const Block& block : channels)
    if (std::ranges::any_of(block, [&](int64_t x) { return x < -most || x >= most; })) return in.fail();
  const double unit = 1.0 / static_cast<double>(most);
  for (size_t i = 0; i < f.size; ++i) {
    double mean = 0;
    for (const Block& block : channels) mean += static_cast<double>(block[i]) * unit;
    r.samples.push_back(static_cast<float>(s.channels == 1 ? mean : mean / static_cast<double>(s.channels)));
  }
}

}  // namespace

Result<Recording> read_flac(std::string_view file, const std::string& name, size_t most) {
  const num::ArithmeticEnv env;
  const Error damaged = bad_input(name + ": this FLAC file is damaged, or is none");
  Bits in(file);
  if (file.substr(0, 4) != "fLaC") return damaged;
  in.take(32);
  Stream s;
  for (bool last = false, first = true; !last; first = false) {
    last = in.take(1) == 1;
    const uint64_t kind = in.take(7), length = in.take(24);
    if (in.failed() || first != (kind == 0) || (kind == 0 && length != 34)) return damaged;
    const size_t end = in.byte() + length;
    if (kind == 0) {
      in.take(32), in.take(48);
      s.rate = static_cast<int64_t>(in.take(20)), s.channels = in.take(3) + 1;
      s.bits = static_cast<int>(in.take(5)) + 1;
    }
    while (!in.failed() && in.byte() < end) in.take(8), in.align();
  }
  if (in.failed() || s.bits < 4 || s.channels > kMostChannels) return damaged;
  Recording r{s.rate, {}};
  while (!in.at_end()) {
    const size_t begin = in.byte();
    read_frame(in, file, s, r);
    if (in.failed())
      return bad_input(name + ": the frame at byte " + std::to_string(begin) +
                       " of this FLAC file is damaged");
    if (r.samples.size() > most) return too_many_samples(name, most);
  }
  return r;
}

}  // namespace invar::audio
