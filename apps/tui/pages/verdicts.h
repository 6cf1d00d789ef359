// The results of this session's verifications, by the receipt's path.
#pragma once

#include <map>
#include <string>

#include "model/job.h"
#include "screen/canvas.h"

namespace invar::tui {

using Verdicts = std::map<std::string, ReceiptView>;

// "VERIFIED", "FAILED", "…" while it is computed, "" where nothing is known.
std::string verdict_word(const std::string& status);
Style verdict_style(const std::string& status);

}  // namespace invar::tui
