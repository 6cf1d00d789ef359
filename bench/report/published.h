// The file of `invar bench --publish`: a report that lasts. It is written after each measurement,
// and a later run goes on where it ends.
#pragma once
#include <string>

#include "bench/run.h"

namespace invar::bench {

class Published {
 public:
  // Errors: the file is another one's, or of another processor or version.
  static Result<Published> open(const std::string& path);
  // What the file has had when it was opened; empty where there was none.
  const Report& report() const { return report_; }
  Status write(const Report&) const;
  // The last time, when the peer has ended: with the time since open() and what other programs took
  // of it.
  Status finish(const Report&);

 private:
  std::string path_;
  Report report_;
  double seconds_ = 0, others_ = 0;  // of all runs that ended
  int64_t most_memory_ = 0;
  double started_ = 0, others_before_ = 0;
};

}  // namespace invar::bench
