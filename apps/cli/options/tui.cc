// The command that starts the terminal interface.
#include "options/shared.h"

namespace invar::cli {

void add_tui(CLI::App& app, int& result) {
  static TuiCommand c;
  auto* cmd =
      app.add_subcommand("tui", "a form, the command that it makes, and its receipts, in the terminal");
  cmd->add_option("--model-name", c.model_name, "the model to begin with");
  cmd->add_option("--receipts", c.receipts,
                  "the folder whose receipts are listed (default: where runs put them)");
  cmd->callback([&result] { result = tui(c); });
}

}  // namespace invar::cli
