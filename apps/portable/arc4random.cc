// arc4random(3) of glibc 2.36, by getrandom(2). LLVM's Support library and libstdc++'s
// std::random_device refer to it: the one symbol by which a program that Debian 12 builds asks for
// a newer glibc than 2.34 (cmake/portable.cmake). Nothing of a result depends on its numbers.
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

// Fills `size` bytes, at most 256, which getrandom gives whole once the pool is initialized.
void fill(void* bytes, size_t size) {
  while (::getrandom(bytes, size, 0) != static_cast<ssize_t>(size))
    if (errno != EINTR) std::abort();
}

}  // namespace

extern "C" {

uint32_t arc4random() noexcept {
  uint32_t number = 0;
  fill(&number, sizeof number);
  return number;
}

void arc4random_buf(void* bytes, size_t size) noexcept {
  constexpr size_t kWhole = 256;
  for (auto* at = static_cast<char*>(bytes); size > 0;) {
    const size_t part = size < kWhole ? size : kWhole;
    fill(at, part);
    at += part, size -= part;
  }
}

}  // extern "C"
