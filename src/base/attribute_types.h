// The types of attributes, as the rooms' ops.toml declare them. tools/ops/generate.py makes
// the table, which is in the library invar_opset.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace invar {

class Attributes;

// The type of an attribute name, the same in all operations; in the order of AttributeValue's
// alternatives.
enum class AttributeType : uint8_t { i64, f32, string, i64_array };
struct AttributeInfo {
  std::string_view name;
  AttributeType type;
};
std::span<const AttributeInfo> attribute_infos();  // ascending by name
// The value of an absent attribute of an operation: of its type, and each element of a list.
struct AttributeDefault {
  std::string_view op, name;
  int64_t i64;
  float f32;
};
AttributeDefault attribute_default(std::string_view op, std::string_view name);  // 0 if there is none
// Whether every attribute has the type of its name, so that kernels can read it. Names that no
// operation declares pass: no kernel reads them.
bool has_attribute_types(const Attributes&);

}  // namespace invar
