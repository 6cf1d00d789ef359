// The fields of the form: one row each, as tools/options/generate.py makes them of form.toml and of
// the tables of options.
#include "base/thread_pool.h"
#include "model/form.h"

namespace invar::tui {

const std::vector<FieldInfo>& fields() {
  static const std::vector<FieldInfo> rows = {
#include "options/form_rows.inc"
  };
  return rows;
}

const FieldInfo& info(Field f) {
  return fields()[static_cast<size_t>(f)];
}

}  // namespace invar::tui
