#include "plan/check.h"

#include "base/opset.h"
#include "plan/cursor.h"
#include "plan/text.h"

namespace invar::plan {

bool safe_path(std::string_view path) {
  if (path.empty() || path.find('\0') != path.npos || path.find('\\') != path.npos) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "..") return false;  // "/x", "x//y", "x/" have an empty part
    begin = end + 1;
  }
  return true;
}

Status covered(const Node& n) {
  const OpInfo* info = op_info(n.op);
  if (!info) return not_covered("operation " + brief(n.op) + " is not one of this build");
  if (info->version != n.version)
    return not_covered("operation " + brief(n.op) + " version " + std::to_string(n.version) +
                       " is not in this build; it has version " + std::to_string(info->version));
  const auto it = n.attrs.find("numerics");
  const std::string* rule = it == n.attrs.end() ? nullptr : std::get_if<std::string>(&it->second);
  if (!rule) return bad_input("operation " + brief(n.op) + " does not name its numerics");
  if (*rule != info->numerics)
    return not_covered("operation " + brief(n.op) + " with numerics " + brief(*rule) +
                       " is not in this build; it has " + quote(info->numerics));
  return {};
}

}  // namespace invar::plan
