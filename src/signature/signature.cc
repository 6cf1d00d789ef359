#include "signature/signature.h"

#include <algorithm>

#include "base/hash/random_bytes.h"

#ifdef INVAR_OPENSSL
#include <openssl/evp.h>

#include <memory>
#else
#include "signature/ed25519.h"
#endif

namespace invar::signature {

// Whether the key is a point of small order, in any of its encodings: such a key has signatures
// that hold for many messages, and that anybody can make. The y of these points, without the sign
// of x; the last three are p - 1, p and p + 1.
static bool has_small_order(PublicKey key) {
  static constexpr std::string_view kPoints[] = {
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  };
  key.back() &= 0x7f;
  return std::ranges::find(kPoints, invar::to_hex(key)) != std::end(kPoints);
}

#ifdef INVAR_OPENSSL
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Context = std::unique_ptr<EVP_MD_CTX, Free>;

Error failed(const char* what) {
  return {Code::internal, std::string("OpenSSL: ") + what + " failed"};
}
const uint8_t* bytes(std::string_view message) {
  return reinterpret_cast<const uint8_t*>(message.data());
}

}  // namespace

bool can_sign() {
  return true;
}

Result<PrivateKey> key_of_seed(const Digest& seed) {
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  PrivateKey made{seed, {}};
  size_t size = made.public_key.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), made.public_key.data(), &size) != 1)
    return failed("EVP_PKEY_get_raw_public_key");
  return made;
}

Result<Signature> sign(const PrivateKey& with, std::string_view message) {
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, with.seed.data(), with.seed.size()));
  const Context context(EVP_MD_CTX_new());
  Signature made;
  size_t size = made.size();
  if (!key || !context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), made.data(), &size, bytes(message), message.size()) != 1)
    return failed("EVP_DigestSign");
  return made;
}

Result<bool> verify(const PublicKey& by, const Signature& signature, std::string_view message) {
  if (has_small_order(by)) return false;
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, by.data(), by.size()));
  const Context context(EVP_MD_CTX_new());
  if (!key || !context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1)
    return failed("EVP_DigestVerifyInit");
  // Bytes that are no point or no scalar are errors of OpenSSL's, and no signature.
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes(message),
                          message.size()) == 1;
}

#else

static Error missing(const char* what) {
  return not_covered(std::string("this build of invar has no OpenSSL and cannot ") + what +
                     ": install libssl-dev and build it again");
}
bool can_sign() {
  return false;
}
Result<PrivateKey> key_of_seed(const Digest&) {
  return missing("use keys");
}
Result<Signature> sign(const PrivateKey&, std::string_view) {
  return missing("make signatures");
}
Result<bool> verify(const PublicKey& by, const Signature& signature, std::string_view message) {
  return !has_small_order(by) && check_ed25519(by, signature, message);
}

#endif

Result<PrivateKey> make_key() {
  INVAR_TRY(const Digest seed, random_bytes());
  return key_of_seed(seed);
}

// The two halves have the size of a digest.
std::string to_hex(const Signature& s) {
  Digest first, second;
  std::copy_n(s.begin(), 32, first.begin());
  std::copy_n(s.begin() + 32, 32, second.begin());
  return invar::to_hex(first) + invar::to_hex(second);
}

std::optional<Signature> signature_from_hex(std::string_view text) {
  if (text.size() != 128) return std::nullopt;
  const auto first = digest_from_hex(text.substr(0, 64)), second = digest_from_hex(text.substr(64));
  if (!first || !second) return std::nullopt;
  Signature s;
  std::copy(second->begin(), second->end(), std::copy(first->begin(), first->end(), s.begin()));
  return s;
}

}  // namespace invar::signature
