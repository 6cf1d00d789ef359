#include "kernels/fusion/part_rules.h"

namespace invar::ops {
namespace {
constinit const RegisteredPartRule* rules = nullptr;  // the first of a list
}

RegisteredPartRule::RegisteredPartRule(const PartRule& one) : rule(one), next(rules) {
  rules = this;
}

const PartRule* find_part_rule(std::string_view op) {
  for (const RegisteredPartRule* r = rules; r; r = r->next)
    if (r->rule.op == op) return &r->rule;
  return nullptr;
}

}  // namespace invar::ops
