#include "device/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <string_view>

#include "base/file/file.h"

namespace invar {
namespace {

// The value of the first line of /proc/cpuinfo that begins with `key`; "" where there is none.
std::string cpuinfo(const std::string& text, std::string_view key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const size_t end = std::min(text.find('\n', at), text.size()), colon = text.find(':', at);
    if (colon < end && colon + 2 < end) return text.substr(colon + 2, end - colon - 2);
  }
  return "";
}

}  // namespace

std::string processor() {
  const auto text = read_file("/proc/cpuinfo");
  for (const char* key : {"model name", "cpu model", "uarch", "cpu\t", "Model", "Hardware"})
    if (const std::string name = text ? cpuinfo(*text, key) : ""; !name.empty()) return name;
  utsname host{};
  uname(&host);
  return host.machine;
}

std::string exact_processor() {
  std::string s = processor();
  const auto text = read_file("/proc/cpuinfo");
  for (const char* key : {"cpu family\t", "model\t", "stepping\t", "cache size\t", "CPU implementer\t",
                          "CPU part\t", "CPU variant\t", "CPU revision\t"})
    if (const std::string value = text ? cpuinfo(*text, key) : ""; !value.empty())
      s += ", " + std::string(key, std::string_view(key).size() - 1) + " " + value;
  return s;
}

std::string describe(const Device::Info& i) {
  auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  return i.name + ", compute capability " + std::to_string(i.compute / 10) + "." +
         std::to_string(i.compute % 10) + ", " + std::to_string(i.processors) + " multiprocessors, " +
         std::to_string(i.memory >> 30) + " GiB; CUDA driver " + version(i.driver) + ", runtime " +
         version(i.runtime);
}

}  // namespace invar
