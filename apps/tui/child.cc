#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace invar::tui {
namespace {

void close_one(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0], write = ends[1];
    return true;
  }
  ~Pipe() {
    close_one(read);
    close_one(write);
  }
};

// Runs in the new process, and does only what is safe between fork and exec.
[[noreturn]] void become(char* const* argv, int in, int out, int err, int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, &usual, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(argv[0], argv);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Status Child::start(const std::string& program, const std::vector<std::string>& arguments, bool speaks) {
  Pipe in, out, err, report;
  if ((speaks && !in.open()) || !out.open() || !err.open() || !report.open())
    return bad_input(std::string("no pipe for a process: ") + std::strerror(errno));
  if (!speaks) in.read = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return bad_input(std::string("no new process: ") + std::strerror(errno));
  if (pid == 0) become(argv.data(), in.read, out.write, err.write, report.write, parent);
  ::setpgid(pid, pid);
  close_one(report.write);
  int error = 0;
  if (::read(report.read, &error, sizeof error) == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return bad_input(program + ": " + std::strerror(error));
  }
  pid_ = group_ = pid;
  in_ = std::exchange(in.write, -1);
  out_ = std::exchange(out.read, -1);
  err_ = std::exchange(err.read, -1);
  for (const int fd : {in_, out_, err_})
    if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  queue_.clear();
  return {};
}

std::string Child::read(int& stream) {
  std::string bytes(1 << 16, '\0');
  const ssize_t n = stream < 0 ? 0 : ::read(stream, bytes.data(), bytes.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return "";
  if (n <= 0) return close_one(stream), "";
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

void Child::say(const std::string& bytes) {
  queue_ += bytes;
  flush();
}

void Child::flush() {
  if (in_ < 0 || queue_.empty()) return;
  const ssize_t n = ::write(in_, queue_.data(), queue_.size());
  if (n > 0) queue_.erase(0, static_cast<size_t>(n));
  if (n < 0 && errno != EAGAIN && errno != EINTR) close_one(in_);
}

void Child::signal(int number) {
  if (pid_ > 0 && ::kill(-group_, number) != 0) ::kill(pid_, number);
}

std::optional<Child::End> Child::end() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  // Processes that it started do not outlive it.
  ::kill(-group_, SIGTERM);
  pid_ = 0;
  close_one(in_);
  if (WIFSIGNALED(status)) return End{0, WTERMSIG(status)};
  return End{WEXITSTATUS(status), 0};
}

void Child::close_streams() {
  close_one(in_);
  close_one(out_);
  close_one(err_);
}

Child::~Child() {
  if (pid_ > 0) {
    signal(SIGINT);
    for (int i = 0; i < 100 && !end(); ++i) ::usleep(20000);
    if (pid_ > 0) {
      signal(SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  close_streams();
}

}  // namespace invar::tui
