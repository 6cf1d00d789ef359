// Values that are checked before any work: devices, instruction sets, names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "options/command_table.h"

namespace invar::cli {

// --device: cpu, cuda or cuda:N; the second of a list of them with commas.
std::optional<Wrong> check_device(const std::string&);
std::optional<Wrong> check_devices(const std::string&);
// --isa: one of those that this CPU and build have.
std::optional<Wrong> check_isa(const std::string&);
// --name: what receipts call the model.
std::optional<Wrong> check_name(const std::string&);
std::optional<Wrong> check_salt(const std::string&);
// --shard: I/N, with I below N.
std::optional<Wrong> check_shard(const std::string&);
// Its two numbers.
std::optional<std::pair<uint64_t, uint64_t>> parse_shard(std::string_view);
// --allowed-origins: pages that a browser lets use a server.
std::optional<Wrong> check_origin(const std::string&);

}  // namespace invar::cli
