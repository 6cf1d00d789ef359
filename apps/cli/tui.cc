// invar tui: a program of its own beside this one, so that `invar` needs no library of the
// terminal.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text/display.h"
#include "commands.h"
#include "console.h"

namespace invar::cli {

int tui(const TuiCommand& c) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  const std::string program = (self.parent_path() / "invar-tui").string();
  std::vector<std::string> words = {program, "--invar", self.string()};
  if (!c.model_name.empty()) words.insert(words.end(), {"--model-name", c.model_name});
  if (!c.receipts.empty()) words.insert(words.end(), {"--receipts", c.receipts});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  if (errno == ENOENT)
    return fail(bad_input("tui: there is no invar-tui in " + self.parent_path().string() +
                          ": it is built where libncurses-dev is installed (./setup.sh build)"));
  return fail(bad_input("tui: " + program + ": " + std::strerror(errno)));
}

}  // namespace invar::cli
