// Ed25519 (RFC 8032): keys, signatures, and whether a signature is of a message by a key. The
// arithmetic is OpenSSL's. A build without OpenSSL reads keys, and refuses what needs them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar::signature {

using PublicKey = Digest;  // 32 bytes; in hexadecimal it is the key's id
using Signature = std::array<uint8_t, 64>;
struct PrivateKey {
  Digest seed;  // RFC 8032: the private key
  PublicKey public_key;
};

// Whether this build has OpenSSL. Where not, signatures are checked by ed25519.h, and those of the
// functions below that make keys and signatures are errors: not_covered.
bool can_sign();

Result<PrivateKey> make_key();
Result<PrivateKey> key_of_seed(const Digest& seed);
Result<Signature> sign(const PrivateKey&, std::string_view message);
// False: it is no signature of this message by this key, or the key has small order, and anybody
// can make its signatures.
Result<bool> verify(const PublicKey&, const Signature&, std::string_view message);

std::string to_hex(const Signature&);  // 128 lower-case digits
std::optional<Signature> signature_from_hex(std::string_view);

}  // namespace invar::signature
