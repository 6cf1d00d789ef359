// The receipts of a folder.
#pragma once

#include <optional>

#include "model/receipts.h"
#include "pages/verdicts.h"
#include "screen/canvas.h"

namespace invar::tui {

class ReceiptsPage {
 public:
  void open(const std::string& folder);
  // Reads a few; whether some are left.
  bool read_some() { return folder_.read_some(); }
  const std::string& folder() const { return folder_.folder(); }
  const ReceiptEntry* selected() const;

  void draw(Canvas&, const Rect&, const Job* check, const Verdicts&);
  // Whether the key was taken.
  bool handle(const Key&);
  // The text about the selected receipt.
  std::string about(const Verdicts&) const;

 private:
  void draw_row(Canvas&, const Rect&, const ReceiptEntry&, bool selected, const Verdicts&);
  void draw_about(Canvas&, const Rect&, const Verdicts&);

  ReceiptFolder folder_;
  std::string problem_;
  size_t at_ = 0, first_ = 0;
  int page_ = 1;
};

}  // namespace invar::tui
