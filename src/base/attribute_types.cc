// The type check of attributes against the table of all operations' attributes.
#include "base/attribute_types.h"

#include <algorithm>

#include "base/attributes.h"

namespace invar {

bool has_attribute_types(const Attributes& attrs) {
  const std::span<const AttributeInfo> infos = attribute_infos();
  return std::all_of(attrs.begin(), attrs.end(), [&](const auto& attribute) {
    const auto& [name, value] = attribute;
    const auto info =
        std::lower_bound(infos.begin(), infos.end(), name,
                         [](const AttributeInfo& i, const std::string& n) { return i.name < n; });
    return info == infos.end() || info->name != name || static_cast<size_t>(info->type) == value.index();
  });
}

}  // namespace invar
