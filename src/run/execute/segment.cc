#include "run/execute/segment.h"

#include <algorithm>

#include "plan/keywords.h"

namespace invar::run {
namespace {

constexpr int64_t kLargestTried = 4096;

// The plan with every symbol in its place a constant: to the runtime a program of one size.
plan::Plan of_sizes(const plan::Plan& plan, const std::vector<int64_t>& sizes) {
  plan::Plan p = plan;
  for (plan::Value& v : p.values)
    for (plan::Dim& d : v.shape)
      if (d.symbol >= 0) d = {sizes[d.symbol], -1};
  p.symbols.clear();
  return p;
}

}  // namespace

Symbols::Symbols(const plan::Plan& plan) {
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    const bool name = plan::is_name(plan.symbols[i]);
    if (name) names_[plan.symbols[i]] = i;
    sums_.push_back(name ? std::nullopt : Polynomial::parse(plan.symbols[i]));
  }
}

int64_t Symbols::size(int symbol, const std::vector<int64_t>& sizes) const {
  const std::optional<Polynomial>& sum = sums_[static_cast<size_t>(symbol)];
  if (!sum) return sizes[static_cast<size_t>(symbol)];
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    const auto at = names_.find(name);
    const int64_t size = at == names_.end() ? -1 : sizes[at->second];
    return size < 0 ? std::nullopt : std::optional(size);
  };
  return std::max<int64_t>(sum->value(lookup).value_or(-1), -1);
}

PartProgram::PartProgram(plan::Part part) : part_(std::move(part)) {
  std::vector<bool> occurs(part_.symbols.size());
  for (const plan::Value& v : part_.plan.values)
    for (const plan::Dim& d : v.shape)
      if (d.symbol >= 0) occurs[d.symbol] = true;
  for (size_t s = 0; s < occurs.size(); ++s)
    if (occurs[s]) symbols_.push_back(static_cast<size_t>(part_.symbols[s]));
}

// The rows that use its weights, which are packed for them.
static std::vector<const ops::Kernel*> users_of(const Program& program) {
  std::vector<const ops::Kernel*> users;
  for (const Weights::Use& u : program.weight_uses()) users.push_back(u.kernel);
  return users;
}

// What packing depends on, it has of any size, but for which nodes fit together (Program::fuse), in some; some programs have no smallest ones.
Status PartProgram::open(const Setting& setting, bool waits) {
  const Symbols symbols(part_.plan);
  for (int64_t size = 1;; size *= 2) {
    std::vector<int64_t> sizes(part_.symbols.size(), size);
    for (size_t s = 0; s < sizes.size(); ++s) sizes[s] = symbols.size(static_cast<int>(s), sizes);
    const plan::Plan small = of_sizes(part_.plan, sizes);
    INVAR_TRY(Program any, Program::make(small, setting.options.isa, setting.device, part_.numbers));
    const Status fits = any.check(1);
    if (fits) return load(setting, any);
    if (part_.plan.symbols.empty()) return waits ? Status() : fits;
    if (size == kLargestTried) return {};
  }
}

Status PartProgram::load(const Setting& setting, const Program& program) {
  INVAR_TRY(weights_, Weights::load(part_.plan, setting.folder, program.weight_uses(), *setting.pool,
                                    {setting.options.check_weights, setting.options.hashed}, setting.device));
  packed_for_ = users_of(program);
  return {};
}

Status PartProgram::resize(const Setting& setting, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> own;
  for (size_t s : symbols_) own.push_back(sizes[s]);
  if (sized_ && own == sizes_) return {};
  program_ = Program();  // its memory first
  std::vector<int64_t> here;
  for (int s : part_.symbols) here.push_back(sizes[static_cast<size_t>(s)]);
  sized_ = std::make_unique<plan::Plan>(of_sizes(part_.plan, here));
  sizes_.assign(symbols_.size() + 1, -2);  // until it is ready
  INVAR_TRY(program_, Program::make(*sized_, setting.options.isa, setting.device, part_.numbers));
  INVAR_CHECK_OK(program_.check(1));
  if (!weights_ || packed_for_ != users_of(program_)) {
    INVAR_CHECK_OK(load(setting, program_));
  }
  program_.set_workers(setting.pool->threads());
  program_.attach(*weights_);
  // Operations that could remember positions hold those of this call.
  const int64_t longest = program_.constant_positions();
  std::vector<ops::Sequence> sequences;
  for (int64_t i = 0; i < program_.constant_sequences(); ++i) sequences.push_back({i, 0});
  INVAR_CHECK_OK(
      program_.reserve(longest, longest, longest, static_cast<int64_t>(sequences.size()), /*ports=*/false));
  INVAR_CHECK_OK(program_.bind(longest, sequences));
  sizes_ = std::move(own);
  return {};
}

}  // namespace invar::run
