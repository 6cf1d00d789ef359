// Spells elementwise operations in torch: an operator, or a function of torch or
// torch.nn.functional.
#include <cmath>
#include <set>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Functions of torch and of torch.nn.functional that have the operation's name and operands.
constexpr const char* kOfTorch[] = {
    "abs",        "acos",  "acosh",       "asin",        "asinh",      "atan",        "atan2",
    "atanh",      "ceil",  "cos",         "cosh",        "erf",        "erfc",        "exp",
    "exp2",       "expm1", "floor",       "fmod",        "isnan",      "log",         "log10",
    "log1p",      "log2",  "logical_and", "logical_not", "logical_or", "logical_xor", "pow",
    "reciprocal", "relu",  "round",       "rsqrt",       "sigmoid",    "sign",        "sin",
    "sinh",       "sqrt",  "tan",         "tanh",        "trunc",      "where"};
constexpr const char* kOfFunctional[] = {"gelu", "hardswish", "logsigmoid", "mish",
                                         "silu", "softplus",  "softsign"};

constexpr std::pair<const char*, const char*> kFormats[] = {
    {"add", "{0} + {1}"},
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
    {"cbrt", "rooms.elementwise.cbrt({0})"},
    {"celu", "functional.celu({0}, {alpha})"},
    {"cospi", "rooms.elementwise.cospi({0})"},
    {"elu", "functional.elu({0}, {alpha})"},
    {"exp10", "torch.pow(10.0, {0})"},
    {"exp_f64", "torch.exp({0})"},
    {"gelu_backward", "torch.ops.aten.gelu_backward(*torch.broadcast_tensors({0}, {1}))"},
    {"gelu_tanh", "functional.gelu({0}, approximate=\"tanh\")"},
    {"gelu_tanh_backward", "torch.ops.aten.gelu_backward({0}, {1}, approximate=\"tanh\")"},
    {"log_f64", "torch.log({0})"},
    {"leakyrelu", "functional.leaky_relu({0}, {alpha})"},
    {"max", "torch.maximum({0}, {1})"},
    {"min", "torch.minimum({0}, {1})"},
    {"mod", "torch.remainder({0}, {1})"},
    {"neg", "-{0}"},
    {"prelu", "torch.where({0} < 0, {1} * {0}, {0})"},
    {"relu_backward", "torch.ops.aten.threshold_backward({0}, {1}, 0.0)"},
    {"sigmoid_backward", "torch.ops.aten.sigmoid_backward({0}, {1})"},
    {"silu_backward", "torch.ops.aten.silu_backward({0}, {1})"},
    {"sinpi", "rooms.elementwise.sinpi({0})"},
    {"swish", "{0} * torch.sigmoid({alpha} * {0})"},
    {"tanh_backward", "torch.ops.aten.tanh_backward({0}, {1})"},
    {"thresholdedrelu", "functional.threshold({0}, {alpha}, 0.0)"}};

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
  for (const char* op : kOfFunctional)
    add(spellings, op, [](const TorchCall& c) -> Result<std::string> {
      return cat("functional.", c.op, "(", python::join(c.from(0)), ")");
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
