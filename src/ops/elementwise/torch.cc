// Spells the elementwise operations in torch that may be of u64, or are no one text (ops.toml).
#include <cmath>
#include <set>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Functions of torch that have the operation's name and operands.
constexpr const char* kOfTorch[] = {"abs", "fmod", "sign", "where"};

constexpr std::pair<const char*, const char*> kFormats[] = {{"add", "{0} + {1}"},
                                                            {"sub", "{0} - {1}"},
                                                            {"mul", "{0} * {1}"},
                                                            {"bitwise_and", "{0} & {1}"},
                                                            {"bitwise_or", "{0} | {1}"},
                                                            {"bitwise_xor", "{0} ^ {1}"},
                                                            {"bitwise_not", "~{0}"},
                                                            {"equal", "{0} == {1}"},
                                                            {"less", "{0} < {1}"},
                                                            {"less_equal", "{0} <= {1}"},
                                                            {"greater", "{0} > {1}"},
                                                            {"greater_equal", "{0} >= {1}"},
                                                            {"shift_left", "{0} << {1}"},
                                                            {"shift_right", "{0} >> {1}"},
                                                            {"max", "torch.maximum({0}, {1})"},
                                                            {"min", "torch.minimum({0}, {1})"},
                                                            {"mod", "torch.remainder({0}, {1})"},
                                                            {"neg", "-{0}"}};

Result<std::string> clip(const TorchCall& c) {
  std::vector<std::string> all = {c[0]};
  for (const char* name : {"min", "max"})
    if (c.attributes.contains(name) && std::isfinite(c.f(name))) all.push_back(cat(name, "=", c.text(name)));
  return all.size() > 1 ? cat("torch.clamp(", python::join(all), ")") : c[0];
}

Result<std::string> div(const TorchCall& c) {
  if (c.is_real()) return cat(c[0], " / ", c[1]);
  return cat("torch.div(", c[0], ", ", c[1], ", rounding_mode=\"trunc\")");
}

Result<std::string> hardsigmoid(const TorchCall& c) {
  const float sixth = 1.0f / 6;
  if (c.f("alpha") == sixth && c.f("beta") == 0.5f) return cat("functional.hardsigmoid(", c[0], ")");
  return cat("torch.clamp(", c.text("alpha"), " * ", c[0], " + ", c.text("beta"), ", 0.0, 1.0)");
}

Result<std::string> isinf(const TorchCall& c) {
  const bool negative = c.i("negative") == 1, positive = c.i("positive") == 1;
  if (negative && positive) return cat("torch.isinf(", c[0], ")");
  if (negative) return cat("torch.isneginf(", c[0], ")");
  if (positive) return cat("torch.isposinf(", c[0], ")");
  return cat("torch.zeros_like(", c[0], ", dtype=torch.bool)");
}

Result<std::string> selu(const TorchCall& c) {
  if (c.f("alpha") == 1.6732631921768188f && c.f("gamma") == 1.0507010221481323f)
    return cat("functional.selu(", c[0], ")");
  return cat(c.text("gamma"), " * functional.elu(", c[0], ", ", c.text("alpha"), ")");
}

Result<std::string> shrink(const TorchCall& c) {
  const float lambd = c.f("lambd"), bias = c.f("bias");
  const std::string limit = c.text("lambd"), moved = c.text("bias"), x = c[0];
  if (lambd >= 0 && (bias == 0 || bias == lambd))
    return cat("functional.", bias != 0 ? "soft" : "hard", "shrink(", x, ", ", limit, ")");
  return cat("torch.where(", x, " < -(", limit, "), ", x, " + ", moved, ", torch.where(", x, " > ", limit,
             ", ", x, " - ", moved, ", torch.where(", x, ".isnan(), ", x, ", 0.0)))");
}

// torch has few functions of u64; these give the same bits on i64.
bool same_on_i64(const std::string& op) {
  static const std::set<std::string> ops = {"add",         "bitwise_and", "bitwise_not", "bitwise_or",
                                            "bitwise_xor", "equal",       "mul",         "neg",
                                            "shift_left",  "sub"};
  return ops.contains(op);
}

void add(TorchSpellings& spellings, const char* op, TorchSpelling spelling) {
  spellings.add(op, [spelling = std::move(spelling)](const TorchCall& c) -> Result<std::string> {
    const bool u64 =
        std::any_of(c.types.begin(), c.types.end(), [](auto& t) { return t.dtype == DType::u64; });
    if (!u64 || c.op == "where") return spelled(spelling, c);
    if (c.op == "shift_right") return cat("rooms.elementwise.shifted_down(", c[0], ", ", c[1], ")");
    if (!same_on_i64(c.op)) return c.refused("of u64");
    return spelled_as_signed(spelling, c);
  });
}

}  // namespace

void spell_elementwise(TorchSpellings& spellings) {
  for (const char* op : kOfTorch)
    add(spellings, op, [](const TorchCall& c) -> Result<std::string> {
      return cat("torch.", c.op, "(", python::join(c.from(0)), ")");
    });
  for (const auto& [op, format] : kFormats) add(spellings, op, format);
  add(spellings, "clip", clip);
  add(spellings, "div", div);
  add(spellings, "hardsigmoid", hardsigmoid);
  add(spellings, "isinf", isinf);
  add(spellings, "selu", selu);
  add(spellings, "shrink", shrink);
}

}  // namespace invar::compiler
