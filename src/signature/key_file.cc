#include "signature/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/text/json.h"

namespace invar::signature {
namespace {

constexpr FileKind kKeyFile{"a key", 1 << 16, true};
constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
constexpr std::string_view kPrivate = "PRIVATE KEY", kPublic = "PUBLIC KEY";
// RFC 8410: all that stands before the 32 bytes of a key, in DER.
constexpr std::string_view kBeforeSeed("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20",
                                       16);
constexpr std::string_view kBeforePublic("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Both kinds have a whole number of groups of three bytes (48 and 44 + 1), so `=` ends the second.
std::string base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// False: not the base64 of any bytes (RFC 4648, canonical).
bool from_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  uint32_t group = 0;
  for (size_t i = 0; i + padding < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == kDigits.npos) return false;
    group = group << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(group >> shift & 255);
    group = 0;
  }
  if (padding == 2) bytes += static_cast<char>(group >> 4 & 255);
  if (padding == 1)
    bytes += static_cast<char>(group >> 10 & 255), bytes += static_cast<char>(group >> 2 & 255);
  return base64(bytes) == text;
}

std::string pem(std::string_view label, std::string_view before, const Digest& key) {
  std::string der(before);
  der.append(reinterpret_cast<const char*>(key.data()), key.size());
  std::string out(kBegin);
  return out.append(label)
      .append(kDashes)
      .append("\n")
      .append(base64(der))
      .append("\n")
      .append(kEnd)
      .append(label)
      .append(kDashes)
      .append("\n");
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && std::strchr(" \t\r", line.back())) line.remove_suffix(1);
  return line;
}

// The error for a label that is not the expected one.
Error other_label(std::string_view label, std::string_view expected, const std::string& name) {
  const bool wants_private = expected == kPrivate;
  if (label == "ENCRYPTED PRIVATE KEY" && wants_private)
    return bad_input(name +
                     ": the key is encrypted, and no passphrase is asked for here: "
                     "`openssl pkey -in FILE -out PLAIN` writes it without one");
  if (label.ends_with(kPrivate) && !wants_private)
    return bad_input(name + ": a private key, where a public one is needed: give its .pub file");
  if (label == kPublic && wants_private)
    return bad_input(name + ": a public key, where a private one is needed: leave .pub out");
  return bad_input(name + ": " + json::quote(json::brief(label)) + ", where " + json::quote(expected) +
                   " is needed: `invar keygen` makes a pair of keys");
}

Result<Digest> from_pem(std::string_view text, std::string_view label, std::string_view before,
                        const std::string& name) {
  std::string body, found;
  bool ended = false;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = end + 1, ++number;
    const auto wrong = [&](const std::string& why) {
      return bad_input(name + ":" + std::to_string(number) + ": not a key: " + why);
    };
    if (found.empty()) {  // RFC 7468 allows any text before
      if (!line.starts_with(kBegin) || !line.ends_with(kDashes) || line.size() < kBegin.size() + 6) continue;
      found = line.substr(kBegin.size(), line.size() - kBegin.size() - kDashes.size());
      if (found != label) return other_label(found, label, name);
    } else if (ended) {
      if (!line.empty()) return wrong("something stands behind its last line");
    } else if (line.starts_with(kDashes)) {
      ended = line == std::string(kEnd) + found + std::string(kDashes);
      if (!ended) return wrong("\"" + std::string(kEnd) + found + std::string(kDashes) + "\" is missing");
    } else {
      body += line;
    }
  }
  std::string der;
  if (found.empty())
    return bad_input(name + ": not a key: no line \"" + std::string(kBegin) + std::string(label) +
                     std::string(kDashes) + "\"");
  if (!ended) return bad_input(name + ": not a key: its last line is missing");
  if (!from_base64(body, der)) return bad_input(name + ": not a key: between its lines stands no base64");
  if (der.size() != before.size() + sizeof(Digest) || !der.starts_with(before))
    return bad_input(
        name +
        ": not an Ed25519 key: `invar keygen` and `openssl genpkey -algorithm ed25519` make such keys");
  Digest key;
  std::memcpy(key.data(), der.data() + before.size(), key.size());
  return key;
}

Error unwritable(const std::string& path, int error) {
  if (error == EEXIST)
    return bad_input(path + ": exists, and keys are never overwritten: choose another path");
  return bad_input(path + ": cannot be written: " + std::strerror(error));
}

Status prepare(NewFile& file, const std::string& path, const std::string& text) {
  if (const int error = file.make(path)) return unwritable(path, error);
  const ssize_t written = ::write(file.descriptor(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) return unwritable(path, written < 0 ? errno : ENOSPC);
  if (const int error = file.flush()) return unwritable(path, error);
  return {};
}

}  // namespace

std::string private_pem(const Digest& seed) {
  return pem(kPrivate, kBeforeSeed, seed);
}
std::string public_pem(const PublicKey& key) {
  return pem(kPublic, kBeforePublic, key);
}
Result<Digest> seed_from_pem(std::string_view text, std::string_view name) {
  return from_pem(text, kPrivate, kBeforeSeed, std::string(name));
}
Result<PublicKey> public_key_from_pem(std::string_view text, std::string_view name) {
  return from_pem(text, kPublic, kBeforePublic, std::string(name));
}

Result<PrivateKey> read_private_key(const std::string& path) {
  INVAR_TRY(const std::string text, read_file(path, kKeyFile));
  INVAR_TRY(const Digest seed, seed_from_pem(text, path));  // first: a public key may be read by others
  struct stat there;
  if (::stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) && (there.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(there.st_mode & 07777));
    return bad_input(path + ": others may read this private key (mode " + mode + "): chmod 600 it");
  }
  return key_of_seed(seed);
}

Result<PublicKey> read_public_key(const std::string& hex_or_path) {
  if (const auto key = digest_from_hex(hex_or_path)) return *key;
  INVAR_TRY(const std::string text, read_file(hex_or_path, kKeyFile));
  return public_key_from_pem(text, hex_or_path);
}

// Both are whole before either has its name, and the private key gets its name last: a process
// that is killed leaves no key without its public one.
Status write_key_pair(const std::string& path, const PrivateKey& key) {
  const std::string public_path = path + ".pub";
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::symlink_status(public_path, ec)))
    return bad_input(
        public_path + ": exists, and keys are never overwritten: choose another path" +
        (::access(path.c_str(), F_OK) == 0 ? "" : ", or remove it if no private key belongs to it"));
  NewFile private_file, public_file;
  INVAR_CHECK_OK(prepare(private_file, path, private_pem(key.seed)));
  INVAR_CHECK_OK(prepare(public_file, public_path, public_pem(key.public_key)));
  if (::access(path.c_str(), F_OK) == 0) return unwritable(path, EEXIST);
  if (const int error = public_file.create(0644)) return unwritable(public_path, error);
  const int error = private_file.create(0600);
  if (!error) return {};
  ::unlink(public_path.c_str());
  return unwritable(path, error);
}

}  // namespace invar::signature
