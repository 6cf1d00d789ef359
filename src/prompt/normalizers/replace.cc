// Replace: every match of a pattern becomes a text.
#include "prompt/normalizers/normalizer.h"

namespace invar::prompt {
namespace {

class Replace : public Normalizer {
 public:
  explicit Replace(Replacement r) : replacement_(std::move(r)) {}

  Status apply(Text& t, Regex::Scratch& scratch) const override {
    std::string out;
    INVAR_TRY(const bool at_start, replacement_.apply(t.text, out, scratch));
    if (at_start && replacement_.content().empty()) t.from_start = false;
    t.text = std::move(out);
    return {};
  }

 private:
  Replacement replacement_;
};

}  // namespace

NormalizerPtr make_replace(Replacement replacement) {
  return std::make_unique<Replace>(std::move(replacement));
}

}  // namespace invar::prompt
