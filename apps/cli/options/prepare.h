// The checks of a command beyond the rows of its options, between its words and its work.
#pragma once

#include <optional>
#include <string_view>

#include "commands.h"

namespace invar::cli {

// None: the command runs. Else the exit code of an error that is said, or of the processes in which
// the command ran.
std::optional<int> prepare(RunCommand&, std::string_view name);
std::optional<int> prepare(ChatCommand&, std::string_view name);
std::optional<int> prepare(BatchCommand&, std::string_view name);
std::optional<int> prepare(ServeCommand&, std::string_view name);
std::optional<int> prepare(InferCommand&, std::string_view name);
std::optional<int> prepare(EncoderCommand&, std::string_view name);
std::optional<int> prepare(ReceiptCommand&, std::string_view name);
std::optional<int> prepare(DisputeCommand&, std::string_view name);
std::optional<int> prepare(BenchCommand&, std::string_view name);
template <class Command>
std::optional<int> prepare(Command&, std::string_view) {
  return std::nullopt;
}

}  // namespace invar::cli
