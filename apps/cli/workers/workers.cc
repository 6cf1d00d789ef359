// Runs with several processes, see workers.h.
#include "workers/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text/decimal.h"
#include "console.h"
#include "progress/terminal_text.h"
#include "run/workers.h"

namespace invar::cli {
namespace {

// Set in processes that mpirun started: the patience in seconds, and the value of --worker-model.
constexpr const char *kJob = "INVAR_JOB", *kJobModel = "INVAR_JOB_MODEL";

std::vector<std::string>& arguments() {
  static std::vector<std::string> all;
  return all;
}

volatile sig_atomic_t child = 0, ended_by = 0, drains = 0;
// mpirun has a session of its own, so a terminal's signals come here alone. It hands on SIGUSR1.
void pass_on(int signal) {
  const bool drain = drains != 0;
  drains = 0;
  if (!drain) ended_by = signal;
  if (child > 0) ::kill(static_cast<pid_t>(child), drain ? SIGUSR1 : signal == SIGHUP ? SIGTERM : signal);
}
// Ctrl-Z: mpirun stops its processes, then this one stops, until both go on.
void pause_all(int) {
  const int error = errno;
  if (child > 0) ::kill(static_cast<pid_t>(child), SIGTSTP);
  ::raise(SIGSTOP);
  if (child > 0) ::kill(static_cast<pid_t>(child), SIGCONT);
  errno = error;
}

void handle_signals(SignalMeaning meaning) {
  drains = meaning.first_drains;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  const auto handle = [&](int signal, void (*how)(int)) {
    struct sigaction old {};
    action.sa_handler = how;
    if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);
  };
  handle(SIGINT, pass_on);
  handle(SIGTERM, pass_on);
  handle(SIGHUP, meaning.hangup_ends ? pass_on : SIG_IGN);
  handle(SIGTSTP, pause_all);
}

// Ends this process as the signal would have, when mpirun has ended: the shell sees what happened.
int end_as_asked(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 128 + signal;
}

// mpirun writes its own text between two lines of dashes. It is kept apart from what the processes
// write, which goes on.
class MpirunText {
 public:
  void take(std::string_view text) {
    for (char c : text) {
      line_ += c;
      if (c == '\n') end_line();
    }
  }
  void finish() {
    if (!line_.empty()) end_line();
  }
  const std::string& said() const { return said_; }
  // Whether a process said itself why the run ends.
  bool explained() const { return explained_; }

 private:
  void end_line() {
    if (line_.starts_with("--------------------"))
      inside_ = !inside_;
    else if (inside_ || line_.find("mpirun") == 0 || line_.find("ORTE") != std::string::npos)
      said_ += line_;
    else if (line_ != "\n" || !said_.empty())
      explained_ |= line_.starts_with("invar: "), write_stderr(line_);
    line_.clear();
  }
  std::string line_, said_;
  bool inside_ = false, explained_ = false;
};

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) return "";
  const size_t from = begin + before.size(), to = text.find(after, from);
  return text.substr(from, to == std::string::npos ? to : to - from);
}

// One line for what mpirun said about a process that a signal ended.
Error lost_process(const std::string& said) {
  std::string flat;
  for (char c : said) flat += c == '\n' ? ' ' : c;
  const std::string rank = between(flat, "process rank ", " "), host = between(flat, " on node ", " "),
                    signal = between(flat, "exited on signal ", ".");
  if (said.find("unable to reliably start") != std::string::npos ||
      said.find("plm_rsh_agent") != std::string::npos)  // no ssh at all
    return bad_input(
        "--workers: a host cannot be reached, or has no Open MPI: `ssh HOST orted --version` must work "
        "without a question; `processes` is this machine");
  if (const std::string program = between(flat, "Executable: ", " "); !program.empty())
    return bad_input("--workers: " + between(flat, "Node: ", " ") + " has no program " + program +
                     ": install the same Invar there, at the same path");
  if (rank.empty() || signal.empty())
    return {Code::failed,
            "the workers' processes ended: " + (flat.empty() ? "mpirun does not say why" : flat)};
  const std::string who = rank == "0" ? "the run's process" : "worker " + rank;
  return {Code::failed, who + " on " + host + " was ended by signal " + signal + ": the run is given up"};
}

// One for each rank of each partition.
int processes_of(const ExecutionOptions& o) {
  return std::max(o.partitions, 1) * o.tensor_parallel;
}

std::vector<std::string> mpirun_command(const ExecutionOptions& o) {
  std::error_code ec;
  std::vector<std::string> command = {"mpirun",
                                      "--bind-to",
                                      "none",
                                      "--oversubscribe",
                                      "--mca",
                                      "btl_vader_single_copy_mechanism",
                                      "none",
                                      "--mca",
                                      "orte_forward_job_control",
                                      "1",
                                      "-x",
                                      kJob,
                                      "-x",
                                      kJobModel,
                                      "-x",
                                      kJobOutput,
                                      "-n",
                                      std::to_string(processes_of(o))};
  if (std::getenv(run::kJobRelay)) command.insert(command.end(), {"-x", run::kJobRelay});
  if (o.workers != "processes") command.insert(command.end(), {"--host", o.workers});
  command.push_back(std::filesystem::read_symlink("/proc/self/exe", ec).string());
  command.insert(command.end(), arguments().begin() + 1, arguments().end());
  return command;
}

[[noreturn]] void become_mpirun(const ExecutionOptions& o, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // no process stays behind
  if (::getppid() != parent) ::_exit(1);
  ::setsid();  // what becomes of the terminal is for the parent to say
  ::dup2(errors, STDERR_FILENO);
  ::setenv(kJob, std::to_string(o.worker_timeout).c_str(), 1);
  ::setenv(kJobModel, model_of_workers().c_str(), 1);
  ::setenv(kJobOutput, is_terminal(STDOUT_FILENO) ? "terminal" : "file", 1);
  if (::geteuid() == 0) {  // whoever runs this as root means it
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  std::vector<std::string> command = mpirun_command(o);
  std::vector<char*> argv;
  for (std::string& s : command) argv.push_back(s.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// Takes what mpirun and its processes write until they end. True: it was stopped, by a signal from
// elsewhere, for `patience` seconds in which this process ran, and was ended.
bool await_mpirun(pid_t pid, int errors, int patience, MpirunText& text, int& status) {
  int stopped = 0;  // seconds
  bool is_stopped = false, given_up = false, open = true;
  for (char buffer[4096];;) {
    pollfd from{errors, POLLIN, 0};
    const int ready = ::poll(&from, open ? 1 : 0, open ? 1000 : 100);
    if (ready > 0) {
      const ssize_t n = ::read(errors, buffer, sizeof buffer);
      if (n > 0) text.take({buffer, static_cast<size_t>(n)});
      open = n > 0 || (n < 0 && errno == EINTR);
      if (open) continue;
    }
    const pid_t changed = ::waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (changed == pid && (WIFEXITED(status) || WIFSIGNALED(status))) break;
    if (changed == pid) is_stopped = WIFSTOPPED(status), stopped = 0;
    if (!is_stopped || ready != 0 || ++stopped < patience || given_up) continue;
    given_up = true;
    ::kill(pid, SIGTERM), ::kill(pid, SIGCONT);
  }
  // Nothing waits for processes that it leaves behind; there are none, or they end by themselves.
  for (char buffer[4096]; open;) {
    pollfd from{errors, POLLIN, 0};
    const ssize_t n = ::poll(&from, 1, 0) > 0 ? ::read(errors, buffer, sizeof buffer) : 0;
    if (n > 0) text.take({buffer, static_cast<size_t>(n)});
    open = n > 0;
  }
  text.finish();
  return given_up;
}

}  // namespace

std::string& model_of_workers() {
  static std::string folder;
  return folder;
}

void remember_arguments(int argc, char** argv) {
  arguments().assign(argv, argv + argc);
}

bool is_in_job() {
  return std::getenv(kJob) != nullptr;
}

std::optional<int> run_under_mpirun(const ExecutionOptions& o, SignalMeaning meaning) {
  if (o.workers.empty() || is_in_job()) return {};
  if (("," + o.workers + ",").find(",,") != std::string::npos)
    return fail(bad_input("--workers: '" + o.workers + "' has an empty name: hosts, comma separated"));
  if (processes_of(o) < 2)
    return fail(
        bad_input("--workers: one process for each partition and rank: give --n-partitions or "
                  "--tensor-parallel 2 or more"));
  // Here, where --json is known; processes say it one by one.
  if (const Status mpi = run::Transport::check_mpi(); !mpi) return fail(mpi.error());
  int errors[2];
  if (::pipe2(errors, O_CLOEXEC) != 0)
    return fail({Code::internal, "--workers: no pipe: " + std::string(std::strerror(errno))});
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    return fail(bad_input("--workers: the system starts no process: " + std::string(std::strerror(errno))));
  if (pid == 0) become_mpirun(o, errors[1], parent);
  child = pid;
  ::close(errors[1]);
  handle_signals(meaning);
  MpirunText text;
  int status = 0;
  const bool stopped = await_mpirun(pid, errors[0], o.worker_timeout, text, status);
  if (stopped)
    return fail({Code::failed, "mpirun was stopped for " + std::to_string(o.worker_timeout) +
                                   " s by a signal: the run is given up"});
  if (ended_by) return end_as_asked(ended_by);
  if (WIFSIGNALED(status) && text.said().empty())
    return fail({Code::failed,
                 "mpirun was ended by signal " + std::to_string(WTERMSIG(status)) + ": the run is given up"});
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code != 0 && text.explained()) return code < 128 ? code : static_cast<int>(Code::failed);
  if (code == 127 && text.said().empty())
    return fail(bad_input("--workers: mpirun is not installed; install openmpi-bin, or leave --workers out"));
  if (code >= 128 || text.said().find("exited on signal") != std::string::npos)
    return fail(lost_process(text.said()));
  if (code != 0 && text.said().find("MPI_ABORT") == std::string::npos &&
      text.said().find("non-zero") == std::string::npos && !text.said().empty())
    return fail(lost_process(text.said()));
  return code;
}

int run_in_job(int (*program)(int argc, char** argv, bool), int argc, char** argv,
               bool environment_was_good) {
  const char* const patience = std::getenv(kJob);
  double seconds = 0;
  if (!patience) return program(argc, argv, environment_was_good);
  if (const std::string wrong = parse_decimal(patience, seconds); !wrong.empty())
    return fail(bad_input(std::string(kJob) + ": " + wrong));
  auto transport = run::Transport::join(seconds);
  if (!transport) return fail(transport.error());
  run::Transport& t = **transport;
  int code = 0;
  if (t.rank() > 0) {
    ::signal(SIGUSR1, SIG_IGN);  // of process 0
    const char* const model = std::getenv(kJobModel);
    code = exit_code(run::work_for(t, model ? model : ""));
  } else if (const char* const socket = std::getenv(run::kJobRelay)) {
    code = exit_code(t.relay(socket));
  } else {
    code = exit_code(t.greet());
    run::Transport::set_current(&t);
    if (code == 0) code = program(argc, argv, environment_was_good);
    run::Transport::set_current(nullptr);
  }
  t.end(code);
  return code;
}

}  // namespace invar::cli
