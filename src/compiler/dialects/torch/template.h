// The text of a torch.expression: Python with fields for operands and dimensions.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "shape/dim_expr.h"

namespace invar::compiler {

// "{0}.reshape(({n*k}, 8))" is operand 0, ".reshape((", dimension n*k, ", 8))". Other braces are
// refused.
struct TorchTemplate {
  struct Piece {
    std::string text = {};  // as it is, if this is neither of the others
    int64_t operand = -1;
    std::optional<DimExpr> dim = {};
  };
  std::vector<Piece> pieces;

  static std::optional<TorchTemplate> parse(llvm::StringRef text) {
    TorchTemplate all;
    while (!text.empty()) {
      const auto [before, rest] = text.split('{');
      if (before.contains('}')) return std::nullopt;
      if (!before.empty()) all.pieces.push_back({before.str()});
      if (before.size() == text.size()) break;
      const auto [inside, behind] = rest.split('}');
      if (inside.size() == rest.size() || inside.empty()) return std::nullopt;
      Piece piece;
      const auto [end, error] = std::from_chars(inside.begin(), inside.end(), piece.operand);
      if (error != std::errc() || end != inside.end()) {
        piece = {.dim = DimExpr::parse_canonical(std::string_view(inside))};
        if (!piece.dim) return std::nullopt;
      }
      if (!piece.dim && piece.operand < 0) return std::nullopt;
      all.pieces.push_back(std::move(piece));
      text = behind;
    }
    return all;
  }
};

}  // namespace invar::compiler
