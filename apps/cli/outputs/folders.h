// The folders that results go to.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace invar::cli {

class OutputFolders {
 public:
  OutputFolders() = default;
  OutputFolders(OutputFolders&&) = default;
  // Removes those folders that it made and nothing was written into.
  ~OutputFolders();

  // Makes the folders above the file that `option` names. Of "" there are none.
  Status make_above(const std::string& option, const std::string& file);
  // Makes this folder, too.
  Status make(const std::string& option, const std::string& folder);

 private:
  Status make_all(const std::string& folder, const std::string& what);
  std::vector<std::string> made_;  // each before those within it
};

}  // namespace invar::cli
