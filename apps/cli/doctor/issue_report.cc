#include "doctor/issue_report.h"

#include <gnu/libc-version.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "base/file/file.h"
#include "base/hash/sha256.h"

namespace invar::cli {
namespace {

using json::Value;

constexpr const char* kVariables[] = {"INVAR_DEBUG",
                                      "INVAR_PYTHON",
                                      "XDG_CACHE_HOME",
                                      "HF_HOME",
                                      "HF_HUB_CACHE",
                                      "HF_HUB_OFFLINE",
                                      "HF_ENDPOINT",
                                      "TMPDIR",
                                      "LD_LIBRARY_PATH",
                                      "LD_PRELOAD",
                                      "CUDA_VISIBLE_DEVICES",
                                      "OMP_NUM_THREADS",
                                      "GLIBC_TUNABLES",
                                      "MALLOC_ARENA_MAX",
                                      "CUDA_MODULE_LOADING",
                                      "CUDA_LAUNCH_BLOCKING",
                                      "LANG",
                                      "LC_ALL",
                                      "TERM",
                                      "NO_COLOR",
                                      "COLUMNS"};
// Whether they are set is all that may be said.
constexpr const char* kSecrets[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "https_proxy", "HTTPS_PROXY"};

std::string content(const char* path) {
  const auto text = read_file(path, {"a file of the system", uint64_t{16} << 20, true});
  return text ? *text : "";
}

// The first line of "KEY...SEPARATOR VALUE" in a file of the system.
std::string value_in(const std::string& text, const std::string& key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find(separator);
    if (at == line.npos) continue;
    const size_t begin = line.find_first_not_of(" \t\"", at + 1), end = line.find_last_not_of(" \t\"");
    return begin == line.npos ? "" : line.substr(begin, end - begin + 1);
  }
  return "";
}

Value words(const std::string& text) {
  std::istringstream in(text);
  Value list = Value::array;
  for (std::string word; in >> word;) list.add(word);
  return list;
}

Value limits() {
  static constexpr std::pair<const char*, decltype(RLIMIT_AS)> kLimits[] = {
      {"address_space", RLIMIT_AS},  {"file_size", RLIMIT_FSIZE}, {"locked_memory", RLIMIT_MEMLOCK},
      {"open_files", RLIMIT_NOFILE}, {"processes", RLIMIT_NPROC}, {"stack", RLIMIT_STACK}};
  Value all;
  for (const auto& [name, which] : kLimits) {
    rlimit limit{};
    if (::getrlimit(which, &limit) == 0)
      all[name] = limit.rlim_cur == RLIM_INFINITY ? Value("unlimited") : Value(limit.rlim_cur);
  }
  std::string group = content("/sys/fs/cgroup/memory.max");
  while (!group.empty() && std::isspace(static_cast<unsigned char>(group.back()))) group.pop_back();
  if (!group.empty()) all["memory_of_the_group"] = group;
  return all;
}

Value environment() {
  Value all = Value::object;
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name)) all[name] = value;
  for (const char* name : kSecrets)
    if (std::getenv(name)) all[name] = "set";
  return all;
}

// Equal where the same rows of the same build ran on the same cases with the same result.
std::string digest_of(const Value& findings) {
  return to_hex(sha256(json::dump(json::list({findings.get("rows"), findings.get("findings")}))));
}

// Every text in the value.
void mask(Value& value, const std::string& home, const std::string& user) {
  if (value.is_string()) value.text = without_user(value.text, home, user);
  for (Value& one : value.items) mask(one, home, user);
  for (auto& [name, one] : value.members) mask(one, home, user);
}

}  // namespace

std::string without_user(std::string text, const std::string& home, const std::string& user) {
  const auto replace = [&](const std::string& what, const std::string& with) {
    const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = 0; what.size() > 1 && (at = text.find(what, at)) != text.npos;) {
      const size_t end = at + what.size();
      const bool whole = (at == 0 || !in_word(text[at - 1]) || !in_word(what[0])) &&
                         (end == text.size() || !in_word(text[end]));
      if (whole) text.replace(at, what.size(), with);
      at += whole ? with.size() : 1;
    }
  };
  replace(home, "~");
  if (user != "root") replace(user, "USER");
  for (size_t at = 0; (at = text.find("/home/", at)) != text.npos;) {  // of others
    const size_t begin = at + 6, end = std::min(text.find_first_of("/: ", begin), text.size());
    text.replace(begin, end - begin, "USER");
    at = begin;
  }
  return text;
}

std::string issue_report(const Value& findings) {
  utsname host{};
  ::uname(&host);
  const std::string cpu = content("/proc/cpuinfo"), memory = content("/proc/meminfo");
  const std::string driver = content("/proc/driver/nvidia/version");
  const std::string flags = value_in(cpu, "flags", ':');
  Value report = {{"report", "invar-doctor 1"},
                  {"system",
                   {{"kernel", std::string(host.sysname) + " " + host.release},
                    {"distribution", value_in(content("/etc/os-release"), "PRETTY_NAME", '=')},
                    {"libc", gnu_get_libc_version()},
                    {"memory", value_in(memory, "MemTotal", ':')},
                    {"memory_available", value_in(memory, "MemAvailable", ':')}}},
                  {"processor",
                   {{"name", value_in(cpu, "model name", ':')},
                    {"microcode", value_in(cpu, "microcode", ':')},
                    {"flags", words(flags.empty() ? value_in(cpu, "Features", ':') : flags)}}},
                  {"gpu_driver", driver.empty() ? Value() : Value(driver.substr(0, driver.find('\n')))},
                  {"limits", limits()},
                  {"environment", environment()},
                  {"conformance", digest_of(findings)},
                  {"doctor", findings}};
  const char* home = std::getenv("HOME");
  const passwd* user = ::getpwuid(::getuid());
  mask(report, home ? home : "", user ? user->pw_name : "");
  return json::dump(report, {.indent = 2}) + "\n";
}

}  // namespace invar::cli
