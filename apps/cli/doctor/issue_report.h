// A file that tells an issue about a machine.
#pragma once

#include <string>

#include "base/text/json.h"

namespace invar::cli {

// The findings of the doctor with the system, its limits and the environment variables that matter,
// as JSON. Names of users and their folders are masked, secrets are left out.
std::string issue_report(const json::Value& findings);

// The text without the user's home folder and name.
std::string without_user(std::string text, const std::string& home, const std::string& user);

}  // namespace invar::cli
