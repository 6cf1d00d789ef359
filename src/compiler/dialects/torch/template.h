// The text of a torch.expression: Python with fields for operands and dimensions.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shape/dim_expr.h"

namespace invar::compiler {

// "{0}.reshape(({k*n}, 8))" is operand 0, ".reshape((", dimension k*n, ", 8))". Other braces are
// refused.
struct TorchTemplate {
  struct Piece {
    std::string text = {};  // as it is, if this is neither of the others
    int64_t operand = -1;
    std::optional<DimExpr> dim = {};
  };
  std::vector<Piece> pieces;

  static std::optional<TorchTemplate> parse(std::string_view text) {
    TorchTemplate all;
    while (!text.empty()) {
      const std::string_view before = text.substr(0, text.find_first_of("{}"));
      if (!before.empty()) all.pieces.push_back({std::string(before)});
      text.remove_prefix(before.size());
      if (text.empty()) break;
      const size_t end = text.find('}');
      if (text[0] == '}' || end == text.npos) return std::nullopt;
      std::optional<Piece> piece = field(text.substr(1, end - 1));
      if (!piece) return std::nullopt;
      all.pieces.push_back(*std::move(piece));
      text.remove_prefix(end + 1);
    }
    return all;
  }

 private:
  static std::optional<Piece> field(std::string_view inside) {
    Piece piece;
    const char* behind = inside.data() + inside.size();
    const auto [end, error] = std::from_chars(inside.data(), behind, piece.operand);
    if (error == std::errc() && end == behind) return piece.operand < 0 ? std::nullopt : std::optional(piece);
    piece = {{}, -1, DimExpr::parse_canonical(inside)};
    return piece.dim ? std::optional(piece) : std::nullopt;
  }
};

}  // namespace invar::compiler
