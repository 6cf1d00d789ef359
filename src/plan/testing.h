// Helpers of tests of the plan's text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/plan.h"

namespace invar::plan {

// A text with something else in the place where `from` stands first.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

inline std::vector<std::string> symbol_texts(const Plan& p) {
  std::vector<std::string> texts;
  for (const DimExpr& symbol : p.symbols) texts.push_back(symbol.text());
  return texts;
}

// Why a text is no plan, behind the file's name.
inline std::string refusal(const std::string& text) {
  const auto p = parse(text, "x.plan");
  return p ? "accepted" : p.error().message.substr(8);
}

}  // namespace invar::plan
