#include "signature/ed25519.h"

#include <algorithm>
#include <cstring>

#include "signature/sha512.h"

namespace invar::signature {
namespace {

using Wide = unsigned __int128;
using Bytes = std::array<uint8_t, 32>;  // of a number, the lowest first

// A number modulo p = 2^255 - 19 in five digits of 51 bits, each below 2^52.
struct Number {
  uint64_t digit[5];
};
constexpr uint64_t kDigit = (uint64_t{1} << 51) - 1;
constexpr Number kZero{{0}}, kOne{{1}};

constexpr Number number(uint64_t small) {
  return {{small}};
}

Number carried(Number n) {
  uint64_t carry = 0;
  for (uint64_t& d : n.digit) d += carry, carry = d >> 51, d &= kDigit;
  n.digit[0] += 19 * carry;
  return n;
}

Number operator+(const Number& a, const Number& b) {
  Number r;
  for (int i = 0; i < 5; ++i) r.digit[i] = a.digit[i] + b.digit[i];
  return carried(r);
}

// Adds 4p, so that no digit is below 0.
Number operator-(const Number& a, const Number& b) {
  Number r;
  for (int i = 0; i < 5; ++i) r.digit[i] = a.digit[i] + 4 * (kDigit - (i == 0 ? 18 : 0)) - b.digit[i];
  return carried(r);
}

Number operator*(const Number& a, const Number& b) {
  Wide sum[5] = {};
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j)  // 2^255 is 19
      sum[(i + j) % 5] += Wide{a.digit[i]} * (b.digit[j] * (i + j < 5 ? 1 : 19));
  Number r;
  Wide carry = 0;
  for (int i = 0; i < 5; ++i) {
    sum[i] += carry;
    r.digit[i] = static_cast<uint64_t>(sum[i]) & kDigit, carry = sum[i] >> 51;
  }
  carry = r.digit[0] + carry * 19;
  r.digit[0] = static_cast<uint64_t>(carry) & kDigit;
  r.digit[1] += static_cast<uint64_t>(carry >> 51);
  return r;
}

// Reads the number of the 255 lowest bits.
Number read(const Bytes& bytes) {
  Number n{};
  for (int bit = 0; bit < 255; ++bit)
    n.digit[bit / 51] |=
        uint64_t{bytes[static_cast<size_t>(bit / 8)]} >> bit % 8 & 1 ? uint64_t{1} << bit % 51 : 0;
  return n;
}

// The one number below p, in bytes.
Bytes written(Number n) {
  n = carried(carried(carried(n)));
  // It is p or more exactly where adding 19 carries out of the 255 bits.
  uint64_t carry = 19;
  for (uint64_t d : n.digit) carry = (d + carry) >> 51;
  n.digit[0] += 19 * carry;
  for (int i = 0; i < 4; ++i) n.digit[i + 1] += n.digit[i] >> 51, n.digit[i] &= kDigit;
  n.digit[4] &= kDigit;
  Bytes bytes{};
  for (int bit = 0; bit < 255; ++bit)
    bytes[static_cast<size_t>(bit / 8)] |=
        static_cast<uint8_t>((n.digit[bit / 51] >> bit % 51 & 1) << bit % 8);
  return bytes;
}

bool operator==(const Number& a, const Number& b) {
  return written(a) == written(b);
}

// x to the power 2^bits - less.
Number power(const Number& x, int bits, uint64_t less) {
  Number r = kOne;
  for (int bit = bits - 1; bit >= 0; --bit) {
    r = r * r;
    // Bits of 2^bits - less, for a `less` of at most 64 bits.
    const bool one = bit >= 63 ? true : ((uint64_t{0} - less) >> bit & 1) != 0;
    if (one) r = r * x;
  }
  return r;
}
Number inverse(const Number& x) {
  return power(x, 255, 21);  // p - 2
}

// A point of -x^2 + y^2 = 1 + d x^2 y^2, as x = X/Z, y = Y/Z, xy = T/Z.
struct Point {
  Number x, y, z, t;
};
constexpr Point kNeutral{kZero, kOne, kOne, kZero};

struct Constants {
  Number d, root;  // d of the curve, and the square root of -1
  Point base;
  Constants();
};

// RFC 8032, 5.1.3. False: no point has this encoding.
bool decode(const Constants& c, const Bytes& bytes, Point& p) {
  const bool is_odd = bytes[31] >> 7;
  const Number y = read(bytes), u = y * y - kOne, v = c.d * y * y + kOne;
  // The square root of u/v is u v^3 (u v^7)^((p - 5) / 8), or that times the root of -1.
  const Number v3 = v * v * v;
  Number x = u * v3 * power(u * v3 * v3 * v, 252, 3);
  if (!(v * x * x == u)) x = x * c.root;
  if (!(v * x * x == u)) return false;
  if ((written(x)[0] & 1) != is_odd) x = kZero - x;
  p = {x, y, kOne, x * y};
  return true;
}

Constants::Constants() {
  d = kZero - number(121665) * inverse(number(121666));
  root = power(number(2), 253, 5);                          // 2^((p - 1) / 4)
  Bytes encoded = written(number(4) * inverse(number(5)));  // an even x
  decode(*this, encoded, base);
}

const Constants& constants() {
  static const Constants the;
  return the;
}

// Complete: also of a point with itself, and of any two.
Point operator+(const Point& p, const Point& q) {
  const Number a = (p.y - p.x) * (q.y - q.x), b = (p.y + p.x) * (q.y + q.x);
  const Number c = p.t * q.t * constants().d, cc = c + c, zz = p.z * q.z, d = zz + zz;
  const Number e = b - a, f = d - cc, g = d + cc, h = b + a;
  return {e * f, g * h, f * g, e * h};
}

Point operator*(const Bytes& times, const Point& p) {
  Point r = kNeutral;
  for (int bit = 255; bit >= 0; --bit) {
    r = r + r;
    if (times[static_cast<size_t>(bit / 8)] >> bit % 8 & 1) r = r + p;
  }
  return r;
}

Bytes encoded(const Point& p) {
  const Number z = inverse(p.z);
  Bytes bytes = written(p.y * z);
  bytes[31] |= static_cast<uint8_t>((written(p.x * z)[0] & 1) << 7);
  return bytes;
}

// The order of the base point: 2^252 + 27742317777372353535851937790883648493.
constexpr Bytes kOrder = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                          0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                          0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};

bool is_below_order(const Bytes& n) {
  return std::lexicographical_compare(n.rbegin(), n.rend(), kOrder.rbegin(), kOrder.rend());
}

// A number of 512 bits modulo the order, bit by bit.
Bytes reduced(const std::array<uint8_t, 64>& n) {
  Bytes r{};
  for (int bit = 511; bit >= 0; --bit) {
    unsigned carry = n[static_cast<size_t>(bit / 8)] >> bit % 8 & 1;
    for (uint8_t& b : r) carry |= unsigned{b} << 1, b = static_cast<uint8_t>(carry), carry >>= 8;
    if (is_below_order(r)) continue;
    int borrow = 0;
    for (size_t i = 0; i < r.size(); ++i) {
      const int difference = r[i] - kOrder[i] - borrow;
      r[i] = static_cast<uint8_t>(difference), borrow = difference < 0;
    }
  }
  return r;
}

}  // namespace

bool check_ed25519(const PublicKey& key, const Signature& signature, std::string_view message) {
  Bytes r, s;
  std::copy_n(signature.begin(), 32, r.begin());
  std::copy_n(signature.begin() + 32, 32, s.begin());
  Point a;
  if (!is_below_order(s) || !decode(constants(), key, a)) return false;
  std::string hashed(r.begin(), r.end());
  hashed.append(key.begin(), key.end()).append(message);
  a.x = kZero - a.x, a.t = kZero - a.t;
  return encoded(s * constants().base + reduced(sha512(hashed)) * a) == r;
}

}  // namespace invar::signature
