// Values, names and dimensions as Python writes them. No text of a model becomes code: names become
// identifiers, and strings are escaped.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "shape/dim_expr.h"

namespace invar::compiler::python {

// Writes as few digits as name the number among those of its format.
std::string literal(float);
std::string literal(double);
std::string literal(int64_t);
std::string literal(std::string_view);  // in quotes, ASCII
std::string literal(const AttributeValue&);
std::string list_of(const std::vector<int64_t>&);
std::string tuple_of(const std::vector<int64_t>&);
std::string tuple_of(const std::vector<std::string>&);
std::string join(const std::vector<std::string>&);  // with commas

std::string_view dtype(DType);  // "torch.float32"

// An expression of Python: a quotient binds as plan.12 says, (n+1)/2*m is (n + 1) // 2 * m in
// brackets.
std::string expression(const DimExpr&, const std::function<std::string(const std::string& symbol)>& name);

bool is_identifier(std::string_view);  // of Python, and no keyword

// Identifiers of one module, no two alike, and none that Python, torch.nn.Module or the printed
// source needs otherwise.
class Names {
 public:
  Names();
  std::string make(std::string_view name);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace invar::compiler::python
