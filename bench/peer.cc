// The peer process: starts it, sends requests and reads its timings.
#include "bench/peer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/opset.h"
#include "base/text/json.h"

namespace invar::bench {

using json::Value;
namespace fs = std::filesystem;

struct Peer::Impl {
  std::string name, version;
  pid_t pid = -1;
  FILE *to = nullptr, *from = nullptr;

  ~Impl() {
    if (to) std::fclose(to);  // end of its input ends the peer
    if (from) std::fclose(from);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }
  Error gone() const {
    return bad_input("the peer " + name +
                     " ended without an answer: give --python of an environment that has it");
  }

  Result<Value> answer() {
    std::string line;
    for (int c; (c = std::fgetc(from)) != EOF && c != '\n';) line += static_cast<char>(c);
    if (line.empty()) return gone();
    Value reply = json::read_or_null(line);
    if (!reply.is_object())
      return bad_input("the peer " + name + " answered no JSON: " + line.substr(0, 200));
    if (const Value* error = reply.find("error"))
      return bad_input("the peer " + name + ": " + error->text.substr(0, 300));
    return reply;
  }
  Result<Value> ask(const Value& request) {
    const std::string line = json::dump(request) + "\n";
    if (std::fwrite(line.data(), 1, line.size(), to) != line.size() || std::fflush(to) != 0) return gone();
    return answer();
  }
};

Peer::Peer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Peer::Peer(Peer&&) noexcept = default;
Peer& Peer::operator=(Peer&&) noexcept = default;
Peer::~Peer() = default;

Result<Peer> Peer::start(const std::string& name, const std::string& python, const std::string& root,
                         int gpu) {
  if (root.empty())
    return bad_input("--peer needs bench/peer.py of the source tree: run the program built there");
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  const std::string script = root + "/bench/peer.py";
  const std::string own = root + "/build/venv/bin/python";
  std::error_code ec;
  const std::string device = gpu < 0 ? "cpu" : "cuda:" + std::to_string(gpu);
  const std::string program = !python.empty() ? python : fs::exists(own, ec) ? own : "python3";
  int in[2], out[2];
  if (::pipe(in) != 0) return bad_input("the peer cannot be started: " + std::string(std::strerror(errno)));
  if (::pipe(out) != 0) {
    ::close(in[0]), ::close(in[1]);
    return bad_input("the peer cannot be started: " + std::string(std::strerror(errno)));
  }
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an error with a message
  impl->pid = ::fork();
  if (impl->pid == 0) {
    ::dup2(in[0], STDIN_FILENO), ::dup2(out[1], STDOUT_FILENO);
    for (int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
    // Large results would otherwise be new pages at every call: the allocator's cost, not the
    // kernel's.
    ::setenv("MALLOC_MMAP_MAX_", "0", 1), ::setenv("MALLOC_TRIM_THRESHOLD_", "1099511627776", 1);
    ::execlp(program.c_str(), program.c_str(), "-B", script.c_str(), name.c_str(), device.c_str(),
             static_cast<char*>(nullptr));
    std::printf("{\"error\":\"%s cannot be run: give --python\"}\n", program.c_str());
    std::fflush(stdout);
    ::_exit(127);
  }
  ::close(in[0]), ::close(out[1]);
  impl->to = ::fdopen(in[1], "w"), impl->from = ::fdopen(out[0], "r");
  if (impl->pid < 0) return bad_input("the peer cannot be started: " + std::string(std::strerror(errno)));
  INVAR_TRY(const Value hello, impl->answer());
  impl->version = hello.contains("version") ? hello.get("version").text : name;
  return Peer(std::move(impl));
}

const std::string& Peer::version() const {
  return impl_->version;
}

Result<std::string> Peer::prepare(const Item& item, int threads, int copies) {
  Value request{{"do", "prepare"},    {"op", item.op},    {"room", op_info(item.op)->room},
               {"threads", threads}, {"copies", copies}, {"past", item.past}};
  for (const char* side : {"in", "out"}) {
    request[side] = Value::array;
    for (const conformance::Tensor& t : side[0] == 'i' ? item.call.in : item.call.out)
      request[side].add(
          {{"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"constant", t.constant}, {"fill", t.fill}});
  }
  request["attrs"] = Value::object;
  for (auto& [name, value] : item.call.attrs) {
    if (const int64_t* i = std::get_if<int64_t>(&value)) request["attrs"][name] = *i;
    if (const F32Bits* f = std::get_if<F32Bits>(&value)) request["attrs"][name] = f->value();
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) request["attrs"][name] = *list;
  }
  INVAR_TRY(const Value reply, impl_->ask(request));
  return reply.get("name").text;
}

Result<double> Peer::time(int64_t calls) {
  INVAR_TRY(const Value reply, impl_->ask({{"do", "time"}, {"calls", calls}}));
  return reply.get("seconds").to_double();
}

std::string source_root() {
  std::error_code ec;
  for (fs::path p = fs::read_symlink("/proc/self/exe", ec); p.has_relative_path(); p = p.parent_path())
    if (fs::exists(p.parent_path() / "bench/peer.py", ec)) return p.parent_path().string();
  return "";
}

}  // namespace invar::bench
