// The checks of a command beyond the rows of its options, between its words and its work.
#pragma once

#include <optional>
#include <string_view>

#include "commands.h"

namespace invar::cli {

// None: the command runs. Else the exit code of an error that is said, or of the processes in which
// the command ran.
std::optional<int> preflight(RunCommand&, std::string_view name);
std::optional<int> preflight(ChatCommand&, std::string_view name);
std::optional<int> preflight(BatchCommand&, std::string_view name);
std::optional<int> preflight(ServeCommand&, std::string_view name);
std::optional<int> preflight(InferCommand&, std::string_view name);
std::optional<int> preflight(EncoderCommand&, std::string_view name);
std::optional<int> preflight(ReceiptCommand&, std::string_view name);
std::optional<int> preflight(DisputeCommand&, std::string_view name);
std::optional<int> preflight(BenchCommand&, std::string_view name);
template <class Command>
std::optional<int> preflight(Command&, std::string_view) {
  return std::nullopt;
}

}  // namespace invar::cli
