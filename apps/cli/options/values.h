// Values that are checked before any work: devices, instruction sets, names.
#pragma once

#include <optional>
#include <string>

#include "options/table.h"

namespace invar::cli {

// --device: cpu, cuda or cuda:N; the second of a list of them with commas.
std::optional<Wrong> check_device(const std::string&);
std::optional<Wrong> check_devices(const std::string&);
// --isa: one of those that this CPU and build have.
std::optional<Wrong> check_isa(const std::string&);
// --name: what receipts call the model.
std::optional<Wrong> check_name(const std::string&);
std::optional<Wrong> check_salt(const std::string&);

}  // namespace invar::cli
