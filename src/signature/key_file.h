// Files of Ed25519 keys, as OpenSSL's tools write and read them: PKCS#8 and SubjectPublicKeyInfo
// (RFC 8410) in PEM (RFC 7468), without a passphrase.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "signature/signature.h"

namespace invar::signature {

std::string private_pem(const Digest& seed);
std::string public_pem(const PublicKey&);
// The key in a file's text. Errors, bad_input with `name`: no PEM, an encrypted key, another type.
Result<Digest> seed_from_pem(std::string_view text, std::string_view name);
Result<PublicKey> public_key_from_pem(std::string_view text, std::string_view name);

// A private key's file. bad_input: others than its owner may read or write it (mode & 077).
Result<PrivateKey> read_private_key(const std::string& path);
// 64 hexadecimal digits, or the path of a public key's file.
Result<PublicKey> read_public_key(const std::string& hex_or_path);
// Writes PATH (mode 0600) and PATH.pub. bad_input: one of them exists.
Status write_key_pair(const std::string& path, const PrivateKey&);

}  // namespace invar::signature
