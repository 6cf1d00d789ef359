// The file of a receipt: its space is taken before anything is computed, and a finished run is
// never lost.
#pragma once

#include <cstdint>
#include <string>

#include "base/file/disk_reservation.h"
#include "base/status.h"
#include "generate/observer.h"
#include "receipt/receipt.h"

namespace invar::generate {

// Found out before anything is computed: can a file of so many bytes be made where the receipt
// shall be? The space is held until the receipt is written. Nothing is held where a device or a
// pipe takes the receipt.
Result<DiskReservation> reserve_receipt(const std::string& path, uint64_t bytes);

// About what a receipt takes: as it is without an answer, and for each new token its digest, its id
// and some text.
uint64_t receipt_size(const receipt::Receipt& described, size_t prompt_bytes, size_t prompt_tokens,
                      int64_t max_new_tokens);

// Writes it. One that cannot be written where asked goes to the temporary folder, which the error
// names; one that no file takes goes to the observer.
Status save_receipt(const std::string& path, const std::string& content, Observer&);

}  // namespace invar::generate
