#include "base/confinement/confinement.h"

#ifdef __linux__
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#endif

namespace invar {

#ifdef __linux__
namespace {

// The kernel's interface (Documentation/userspace-api/landlock.rst), of which older headers lack
// parts. The numbers of the system calls are those of every architecture.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kVersion = 1, kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0, kReadFile = 1 << 2, kReadFolder = 1 << 3;
constexpr uint64_t kFirstRights = (1 << 13) - 1, kRefer = 1 << 13, kTruncate = 1 << 14;
constexpr int kLeastVersion = 2;  // the first one forbids every move between folders
// Of a ruleset of version 6: signals to processes outside, and sockets without a name in a folder.
constexpr uint64_t kScopes = 3;

struct Ruleset {
  uint64_t files = 0, network = 0, scopes = 0;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

std::string failure(const char* what) {
  return std::string(what) + ": " + std::strerror(errno);
}

// Forbids to write, but below the folders, and to start programs.
std::string confine_files(const std::vector<std::string>& writable) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kVersion);
  if (version < kLeastVersion) return "this kernel has no Landlock of version 2 (Linux 5.19)";
  Ruleset rules;
  rules.files = (kFirstRights & ~(kReadFile | kReadFolder)) | kRefer | (version >= 3 ? kTruncate : 0);
  rules.scopes = version >= 6 ? kScopes : 0;
  const size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  const int ruleset = static_cast<int>(::syscall(kCreateRuleset, &rules, size, 0));
  if (ruleset < 0) return failure("Landlock");
  std::string wrong;
  for (const std::string& folder : writable) {
    PathRule rule{rules.files & ~kExecute, ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (rule.folder < 0) continue;
    if (::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) != 0) wrong = failure(folder.c_str());
    ::close(rule.folder);
  }
  if (wrong.empty() && ::syscall(kRestrictSelf, ruleset, 0) != 0) wrong = failure("Landlock");
  ::close(ruleset);
  return wrong;
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr uint32_t kArchitecture = AUDIT_ARCH_RISCV64;
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_PPC64LE;
#elif defined(__s390x__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_S390X;
#else
constexpr uint32_t kArchitecture = 0;
#endif
constexpr uint32_t kX32 = 0x40000000;  // the second set of numbers of x86-64
constexpr uint32_t kIoUring = 425;     // io_uring_setup: it makes sockets, too

// Forbids to make sockets, by every way that the kernel has.
std::string confine_network() {
  if (kArchitecture == 0) return "no filter for this architecture";
  constexpr auto number = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto architecture = static_cast<uint32_t>(offsetof(seccomp_data, arch));
  constexpr auto refuse = SECCOMP_RET_ERRNO | EPERM;
#ifdef SYS_socketcall
  constexpr uint32_t socketcall = SYS_socketcall;
#else
  constexpr uint32_t socketcall = SYS_socket;
#endif
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, architecture),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, socketcall, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIoUring, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? "" : failure("seccomp");
}

}  // namespace

Confined confine(const Confinement& wanted) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    const std::string why = failure("no_new_privs");
    return {why, why};
  }
  Confined made{confine_files(wanted.writable), {}};
  made.network = wanted.network ? "a model may have to be downloaded" : confine_network();
  return made;
}
#else
Confined confine(const Confinement&) {
  return {"not on this system", "not on this system"};
}
#endif

}  // namespace invar
