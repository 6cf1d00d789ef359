// What whoever runs a server hears of it: lines of a log, and the states of systemd's protocol.
#pragma once

#include <functional>
#include <string>

#include "base/text/json.h"

namespace invar::cli {

// `form`: text, json or none. The function may be called by any thread; none: nothing is logged.
std::function<void(json::Value event)> log_as(const std::string& form);

// Sends it to the socket that NOTIFY_SOCKET names, as sd_notify(3) does. Without one, and where
// nobody listens, nothing happens.
void tell_supervisor(const std::string& state);

}  // namespace invar::cli
