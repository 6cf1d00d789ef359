#include "store/store.h"

namespace invar::store {

Result<std::unique_ptr<Store>> open(const std::string& where) {
  const size_t scheme = where.find("://");
  if (scheme == where.npos) return open_sqlite(where);
  const std::string name = where.substr(0, scheme);
  if (name == "postgresql" || name == "postgres") return open_postgresql(where);
  if (name == "sqlite") return open_sqlite(where.substr(scheme + 3));
  return bad_input(name + "://: no store of this kind: a file of SQLite, or postgresql://HOST/DATABASE");
}

}  // namespace invar::store
