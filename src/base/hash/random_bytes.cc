#include "base/hash/random_bytes.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace invar {

Result<Digest> random_bytes() {
  Digest d;
  if (::getentropy(d.data(), d.size()) == 0) return d;
  return Error{Code::internal, std::string("no random bytes from the system: ") + std::strerror(errno)};
}

}  // namespace invar
