// The values of a case: functions of (seed, operand, index) in integer arithmetic, equal on every
// machine. Their names say which mistakes they expose.
#include <cmath>
#include <cstring>

#include "conformance/case.h"
#include "num/convert/convert.h"

namespace invar::conformance {
namespace {

// splitmix64's finaliser over a counter.
uint64_t random_bits(uint64_t seed, int operand, int64_t i, int draw = 0) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(operand) * 0xd1342543de82ef95u +
               (static_cast<uint64_t>(i) * 4 + static_cast<uint64_t>(draw) + 1) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// +-(1 + 23 random bits) * 2^e, e uniform in [low, high].
uint32_t scattered(uint64_t r, int low, int high) {
  uint32_t exponent =
      static_cast<uint32_t>(127 + low + static_cast<int>((r >> 32) % static_cast<uint64_t>(high - low + 1)));
  return static_cast<uint32_t>(r >> 31 & 0x80000000u) | exponent << 23 | static_cast<uint32_t>(r & 0x7fffffu);
}

uint32_t f32_normal(uint64_t r) {  // roughly Gaussian, standard deviation about 0.58
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int>(r >> 16 * i & 0xffff);
  return num::f32_bits(std::ldexp(static_cast<float>(sum - 2 * 0xffff), -16));
}

constexpr uint32_t kFiniteEdges[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x80800000,
                                     0x00400000, 0x0dabcdef, 0x8dabcdef, 0x3f800000, 0xbf800000, 0x3f7fffff};
constexpr uint32_t kNonFinite[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
                                   0x7f800001, 0x7f7fffff, 0xff7fffff};

constexpr uint32_t kFew[] = {0x80000000, 0x00000000, 0x3f800000, 0xbf800000};

template <size_t N>
uint32_t pick(const uint32_t (&from)[N], uint64_t r) {
  return from[r % N];
}

// One f32 value of a named fill; false: no such name.
bool f32_value(const std::string& fill, uint64_t seed, int operand, int64_t i, uint32_t& out) {
  uint64_t r = random_bits(seed, operand, i), s = random_bits(seed, operand, i, 1);
  if (fill == "normal")
    out = f32_normal(r);
  else if (fill == "wide")
    out = scattered(r, -40, 40);  // any other order of a sum gives other bits
  else if (fill == "tiny")
    out = scattered(r, -80, -60);  // products underflow, to -0 too
  else if (fill == "huge")
    out = scattered(r, 50, 64);  // products overflow
  else if (fill == "angle")
    out = scattered(r, -20, 127);
  else if (fill == "score")
    out = num::f32_bits(std::ldexp(static_cast<float>(static_cast<int>(r % 40001) - 20000), -7));
  else if (fill == "spread")
    out = scattered(r, -120, 120);
  else if (fill == "cliff")
    out = s % 8 ? num::f32_bits(-87 - static_cast<float>(r % 4352) / 256) : 0;  // exp is subnormal
  else if (fill == "steps")
    out = num::f32_bits(
        -static_cast<float>((i / 128 + 1) % 2 * (92 + i / 128 * 3) + static_cast<int64_t>(r % 4)));  // by 128
  else if (fill == "minute")
    out = scattered(r, -127, -120);  // on both sides of the smallest normal number
  else if (fill == "edge")
    out = s % 4 == 0 ? pick(kFiniteEdges, r) : f32_normal(r);
  else if (fill == "rare")
    out = s % 300 == 0 ? pick(kNonFinite, r) : f32_normal(r);
  else if (fill == "special")
    out = s % 3 == 0 ? pick(kNonFinite, r) : s % 3 == 1 ? pick(kFiniteEdges, r) : scattered(r, -127, 127);
  else if (fill == "any")
    out = static_cast<uint32_t>(r);
  else if (fill == "cancel") {  // pairs that nearly annihilate, of changing magnitude
    uint32_t first = scattered(random_bits(seed, operand, i / 2), -12, 12);
    out = i % 2 ? (first ^ 0x80000000u) + static_cast<uint32_t>(r % 3) : first;
  } else if (fill == "masked")
    out = s % 8 ? 0xff800000 : f32_normal(r);  // scores behind a mask
  else if (fill == "few")
    out = pick(kFew, r);  // ties
  else if (fill.starts_with("bits("))
    out = static_cast<uint32_t>(std::stoul(fill.substr(5), nullptr, 16));
  else if (fill == "zero")
    out = 0;
  else if (fill == "one")
    out = 0x3f800000;
  else
    return false;
  return true;
}

// An integer of any magnitude, the extremes among them.
int64_t any_integer(uint64_t r, uint64_t s) {
  constexpr int64_t kEdges[] = {INT64_MIN,   INT64_MAX,          0,   -1,  16777217, 2147483648,
                                -2147483649, 0x1000001000000001, 255, -129};
  if (s % 4 == 0) return kEdges[r % std::size(kEdges)];
  return static_cast<int64_t>(r) >> s % 64;
}

bool value(const Tensor& t, uint64_t seed, int operand, int64_t i, uint64_t& bits) {
  uint64_t r = random_bits(seed, operand, i), s = random_bits(seed, operand, i, 1);
  std::string name = t.fill.substr(0, t.fill.find('('));
  int64_t limit = name == "below" || name == "around" ? std::stoll(t.fill.substr(name.size() + 1)) : 0;
  if (t.dtype == DType::f32 || t.dtype == DType::bf16 || t.dtype == DType::f16 || t.dtype == DType::f64) {
    uint32_t f;
    if (!f32_value(t.fill, seed, operand, i, f)) return false;
    bits = f;
    if (t.dtype == DType::bf16) bits = f >> 16;  // truncated: subnormals and NaN payloads stay
    if (t.dtype == DType::f16) {
      bits = num::f16_from_f32(num::f32_from_bits(f));
      if (f % 64 == 5) bits = (bits & 0x8000) | (f >> 8 & 0x3ff);  // subnormals
    }
    if (t.dtype == DType::f64) {
      bits = std::bit_cast<uint64_t>(static_cast<double>(num::f32_from_bits(f)));
      if (s % 8)
        bits |=
            s % 8 == 1 ? 0x10000000 : random_bits(seed, operand, i, 2) & 0x1fffffff;  // ties, and all bits
    }
    return true;
  }
  if (t.dtype == DType::boolean) return bits = r & 1, true;
  if (name == "below") return bits = r % static_cast<uint64_t>(limit), true;
  if (name == "around") {  // mostly below the limit, sometimes outside
    bits = s % 4 ? r % static_cast<uint64_t>(limit) : static_cast<uint64_t>(any_integer(r, s >> 2));
    if (s % 16 == 0) bits = static_cast<uint64_t>(limit);
    return true;
  }
  if (name == "any") return bits = static_cast<uint64_t>(any_integer(r, s)), true;
  return false;
}

}  // namespace

Result<std::vector<std::byte>> materialise(const Tensor& t, uint64_t seed, int operand) {
  size_t width = size_of(t.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(t.elements()) * width);
  for (int64_t i = 0; i < t.elements(); ++i) {
    uint64_t bits = 0;
    if (!t.bits.empty())
      bits = t.bits[static_cast<size_t>(i)];
    else if (!value(t, seed, operand, i, bits))
      return bad_input("no fill '" + t.fill + "' for " + std::string(name_of(t.dtype)));
    std::byte* to = bytes.data() + static_cast<size_t>(i) * width;
    uint8_t b1 = static_cast<uint8_t>(bits);
    uint16_t b2 = static_cast<uint16_t>(bits);
    uint32_t b4 = static_cast<uint32_t>(bits);
    const void* from = width == 1   ? static_cast<const void*>(&b1)
                       : width == 2 ? &b2
                       : width == 4 ? static_cast<const void*>(&b4)
                                    : &bits;
    std::memcpy(to, from, width);
  }
  return bytes;
}

}  // namespace invar::conformance
