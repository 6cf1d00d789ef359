// The receipts of a folder. They are read a few at a time, so that no folder holds the screen up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::tui {

struct ReceiptEntry {
  std::string path, name;  // the name is that in the folder
  int64_t modified = 0;    // seconds since 1970
  uint64_t bytes = 0;
  // Fields as the file has them; nothing is checked here.
  std::string hash, model, prompt, answer, operation_set, numerics, profile, device, version, finish;
  std::string title;  // a line for the prompt: of a conversation what was said last
  int64_t prompt_tokens = 0, answer_tokens = 0;
};

class ReceiptFolder {
 public:
  // Lists the files; entries() grows as read_some() reads them.
  Status open(const std::string& folder);
  // Reads about `bytes` of files. Whether some are left.
  bool read_some(uint64_t bytes = 4 << 20);

  const std::string& folder() const { return folder_; }
  const std::vector<ReceiptEntry>& entries() const { return entries_; }  // the latest first
  size_t unread() const { return waiting_.size(); }
  // The number of files that are no receipts.
  size_t others() const { return others_; }
  // The number of receipts that are not listed because there are very many.
  size_t left_out() const { return left_out_; }

 private:
  std::string folder_;
  std::vector<ReceiptEntry> entries_;
  std::vector<ReceiptEntry> waiting_;  // the next one last
  size_t others_ = 0, left_out_ = 0;
};

// Whether the text is a receipt, and what it says.
bool read_receipt(const std::string& text, ReceiptEntry&);
// "2026-11-26 20:42", the local time.
std::string date_text(int64_t seconds);

}  // namespace invar::tui
