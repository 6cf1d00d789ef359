// A job of worker processes, see job.h.
#include "jobs/job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/file/temporary_file.h"

extern char** environ;

namespace invar::python {
namespace {

constexpr double kToEnd = 10;  // seconds for mpirun, which ends processes that do not end themselves

Error from_system(const std::string& what) {
  return bad_input("workers: " + what + ": " + std::strerror(errno));
}

// A descriptor that is closed here.
struct Descriptor {
  const int number;
  explicit Descriptor(int n) : number(n) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Result<std::unique_ptr<Job>> Job::start(std::vector<std::string> command, double patience_seconds,
                                        const std::function<bool()>& goes_on) {
  std::unique_ptr<Job> job(new Job);
  INVAR_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  const std::string path = folder.path() + "/run";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return bad_input("workers: " + path +
                     " is too long for the name of a socket: set TMPDIR to a shorter one");
  path.copy(address.sun_path, path.size());
  const Descriptor listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listening.number < 0 ||
      ::bind(listening.number, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.number, 1) != 0)
    return from_system("no socket " + path);
  INVAR_CHECK_OK(job->spawn(command, path));
  INVAR_TRY(std::unique_ptr<run::Relay> relay, job->await(listening.number, goes_on));
  std::optional<std::vector<std::byte>> first;
  while (!(first = relay->take(run::Relay::kSize))) {
    if (!relay->is_open()) return job->why();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int32_t size = 0;  // how many processes there are
  if (first->size() == sizeof size) std::memcpy(&size, first->data(), sizeof size);
  if (size < 2) return Error{invar::Code::internal, "workers: process 0 of the job says something else"};
  job->transport_ = run::Transport::over(
      std::move(relay), size, patience_seconds, [j = job.get()] { return j->why().message; },
      [j = job.get()] {
        if (!j->has_ended(0)) ::kill(j->command_, SIGTERM);
      });
  INVAR_CHECK_OK(job->transport_->greet());
  return job;
}

Status Job::spawn(std::vector<std::string>& command, const std::string& socket) {
  errors_ = ::memfd_create("invar-workers", MFD_CLOEXEC);
  if (errors_ < 0) return from_system("no file for messages");
  std::vector<char*> arguments, environment;
  for (std::string& one : command) arguments.push_back(one.data());
  std::string relay = std::string(run::kJobRelay) + "=" + socket;
  for (char** one = environ; *one; ++one)
    if (std::string_view(*one).find(relay.substr(0, relay.find('=') + 1)) != 0) environment.push_back(*one);
  environment.push_back(relay.data());
  arguments.push_back(nullptr), environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files), ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, errors_, STDERR_FILENO);
  // A session of its own: Ctrl-C is for this process, which ends the job.
  sigset_t all, none;
  ::sigfillset(&all), ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all), ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  errno = ::posix_spawnp(&command_, arguments[0], &files, &attributes, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&files), ::posix_spawnattr_destroy(&attributes);
  if (errno == 0) return {};
  command_ = 0;
  return from_system("the program '" + command[0] + "' does not start");
}

Result<std::unique_ptr<run::Relay>> Job::await(int listening, const std::function<bool()>& goes_on) {
  for (;;) {
    pollfd from{listening, POLLIN, 0};
    if (::poll(&from, 1, 50) > 0)
      if (const int connected = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC); connected >= 0)
        return std::make_unique<run::Relay>(connected);
    if (has_ended(0)) return why();
    if (!goes_on()) return Error{invar::Code::failed, "workers: interrupted"};
  }
}

bool Job::has_ended(double seconds) {
  const auto last = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (command_ > 0 && ::waitpid(command_, &status_, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  command_ = 0;
  return true;
}

Error Job::why() {
  const bool ended = has_ended(kToEnd);
  char text[4096];
  const ssize_t n = ::pread(errors_, text, sizeof text, 0);
  std::string_view said(text, n > 0 ? static_cast<size_t>(n) : 0);
  const int code = ended && WIFEXITED(status_) ? WEXITSTATUS(status_) : 1;
  const invar::Code kind = code == 2 || code == 3 ? static_cast<invar::Code>(code) : invar::Code::failed;
  constexpr std::string_view kBefore = "invar: ";
  const size_t at = said.starts_with(kBefore) ? 0 : said.find("\ninvar: ");
  if (at == said.npos) return {kind, "the workers' processes ended: the run is given up"};
  said.remove_prefix(at + kBefore.size() + (at > 0));
  return {kind, std::string(said.substr(0, said.find('\n')))};
}

Job::~Job() {
  if (transport_) transport_->end(0);
  if (command_ > 0 && !has_ended(transport_ ? kToEnd : 0)) {
    ::kill(command_, SIGTERM);
    if (!has_ended(kToEnd)) ::kill(command_, SIGKILL), has_ended(kToEnd);
  }
  if (errors_ >= 0) ::close(errors_);
}

}  // namespace invar::python
