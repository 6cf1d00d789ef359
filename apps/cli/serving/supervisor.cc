#include "serving/supervisor.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/text/display.h"
#include "console.h"

namespace invar::cli {
namespace {

std::string time_in_utc() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(milliseconds % 1000));
  return text;
}

}  // namespace

// An event as a line: JSON, or its values. Texts of clients have no control characters in either.
std::function<void(json::Value)> log_as(const std::string& form) {
  if (form == "none") return nullptr;
  return [as_json = form == "json"](json::Value event) {
    if (as_json) {
      json::Value line = {{"time", time_in_utc()}};
      if (!event.contains("level")) line["level"] = "info";
      line.update(event);
      return write_stderr(json::dump(line, {.ascii = true}) + "\n");
    }
    std::string line;
    for (const auto& [name, value] : event.members)
      if (name != "event" && !(value.is_string() && value.text.empty()))
        line += (line.empty() ? "" : " ") + name + "=" +
                printable(value.is_string() ? value.text : json::compact(value));
    write_line(event.get("event").text, line);
  };
}

void tell_supervisor(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const size_t length = path ? std::strlen(path) : 0;
  if (length < 2 || length >= sizeof to.sun_path || (*path != '/' && *path != '@')) return;
  std::memcpy(to.sun_path, path, length);
  if (*path == '@') to.sun_path[0] = '\0';
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  [[maybe_unused]] const auto sent =
      ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
               static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  ::close(socket);
}

}  // namespace invar::cli
