// A library like those built with -ffast-math, only worse: it flushes subnormals and rounds towards
// zero in the thread that loads it, in every thread that starts after it, and in every thread that
// waits. With $HOSTILE_SYSTEM_CALLS it does so in every thread that reads, writes, maps or closes,
// and with $HOSTILE_TRAPS it unmasks the traps of all exceptions, too. Loaded or preloaded by the
// tests; at exit it writes the number of changes to the file $HOSTILE_LOG. $HOSTILE_MOST_THREADS
// limits the number of threads that can start.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdio>
#include <cstdlib>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

std::atomic<int> threads, yields, calls;
const bool strikes_calls = std::getenv("HOSTILE_SYSTEM_CALLS") != nullptr,
           unmasks_traps = std::getenv("HOSTILE_TRAPS") != nullptr;

struct Start {
  void* (*function)(void*);
  void* argument;
};

}  // namespace

extern "C" void hostile_strike() {
  std::fesetround(FE_TOWARDZERO);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ, DAZ
  if (unmasks_traps) _mm_setcsr(_mm_getcsr() & ~0x1fbfu);
#elif defined(__aarch64__)
  unsigned long word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  asm volatile("msr fpcr, %0" : : "r"(word | 1ul << 24));  // FZ
#endif
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  const char* most = std::getenv("HOSTILE_MOST_THREADS");  // as a limit of processes does
  if (most && threads >= std::atoi(most)) return EAGAIN;
  ++threads;
  auto begin = [](void* p) -> void* {
    const Start start = *static_cast<Start*>(p);
    delete static_cast<Start*>(p);
    hostile_strike();
    return start.function(start.argument);
  };
  return real(thread, attributes, begin, new Start{function, argument});
}

extern "C" int sched_yield() {
  ++yields;
  hostile_strike();
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace {

template <class... Arguments>
long called(long number, Arguments... arguments) {
  const long result = ::syscall(number, arguments...);
  if (strikes_calls) ++calls, hostile_strike();
  return result;
}

}  // namespace

extern "C" ssize_t read(int fd, void* buffer, size_t bytes) {
  return called(SYS_read, fd, buffer, bytes);
}
extern "C" ssize_t write(int fd, const void* buffer, size_t bytes) {
  return called(SYS_write, fd, buffer, bytes);
}
extern "C" int close(int fd) {
  return static_cast<int>(called(SYS_close, fd));
}
extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return reinterpret_cast<void*>(called(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

namespace {

[[gnu::constructor]] void load() {
  hostile_strike();
}
[[gnu::destructor]] void unload() {
  if (const char* path = std::getenv("HOSTILE_LOG"))
    if (FILE* log = std::fopen(path, "w")) {
      std::fprintf(log, "threads %d yields %d calls %d\n", threads.load(), yields.load(), calls.load());
      std::fclose(log);
    }
}

}  // namespace
