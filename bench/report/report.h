// A report as a table for people, as JSON, as a drawing.
#pragma once
#include <string>

#include "bench/run.h"

namespace invar::bench {

std::string table(const Report&);
std::string json_of(const Report&);  // one object; docs/reference/bench.md names its fields
// Scalable Vector Graphics: a bar per row, its fraction of the machine's limit; a mark for the
// ratio to the peer.
std::string svg(const Report&);

}  // namespace invar::bench
