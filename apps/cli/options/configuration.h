// Options that the command line does not have: of a file in JSON, and of the environment.
#pragma once

#include <optional>
#include <vector>

#include "options/argument_reader.h"
#include "options/command_table.h"

namespace invar::cli {

// Of a command with an option `config`. What `given` has stays; then INVAR_COMMAND_OPTION counts,
// then the file. The environment gives options of the groups Server and Receipt alone, so that no
// variable decides arithmetic. Errors: another variable of this name, a member of the file that is
// no option, a value of another type.
std::optional<Advice> add_configuration(const CommandRow&, const CommandText&, std::vector<Given>& given);

}  // namespace invar::cli
