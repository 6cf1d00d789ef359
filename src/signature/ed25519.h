// Checks Ed25519 signatures (RFC 8032) without a library, for builds that have no OpenSSL. Nothing
// here is secret, so its time may depend on the values. Signatures are made by OpenSSL alone.
#pragma once

#include "signature/signature.h"

namespace invar::signature {

// The answer of OpenSSL's: without cofactor, an R in its one encoding, S below the group's order. A
// key may have a y of p or more.
bool check_ed25519(const PublicKey& key, const Signature& signature, std::string_view message);

}  // namespace invar::signature
