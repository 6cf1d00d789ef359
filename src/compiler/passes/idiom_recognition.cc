// Operations that exporters write as compositions become one operation again, where the program's choices allow it
// (spec/choices.md). Before every other rewrite, so that what is found does not depend on those.
#include "compiler/passes/idiom_recognition.h"

#include "base/opset.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "rooms.inc"

namespace invar::compiler {
namespace {

struct Pattern {
  llvm::StringRef choice;
  Recognizer recognize;
};
#define INVAR_IDIOM(name, choice) {choice, recognize_##name},
constexpr Pattern kPatterns[] = {INVAR_IDIOMS};
#undef INVAR_IDIOM

class Recover : public PassWrapper<Recover, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Recover)
  explicit Recover(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}
  StringRef getArgument() const final { return "repro-recover"; }
  StringRef getDescription() const final { return "Recover operations that were written as compositions"; }
  void runOnOperation() final;

 private:
  bool find(const Pattern&);
  std::vector<std::string> allowed_;
};

bool Recover::find(const Pattern& pattern) {
  Block& block = getOperation().front();
  IdiomContext recovery;
  bool found = false;
  remove_dead(block);
  for (Operation& op : block)
    if (isa<ReproOp>(op)) found |= pattern.recognize(&op, recovery);
  return found;
}

void Recover::runOnOperation() {
  std::set<std::string> applied;
  for (const Pattern& pattern : kPatterns)
    if (llvm::is_contained(allowed_, pattern.choice) && find(pattern)) applied.insert(pattern.choice.str());
  if (applied.empty()) return;
  remove_dead(getOperation().front());
  Builder build(&getContext());
  SmallVector<llvm::StringRef> names(applied.begin(), applied.end());
  getOperation()->setAttr(kChoices, build.getStrArrayAttr(names));
}

}  // namespace

Result<std::vector<std::string>> choices_of(std::string_view text) {
  const auto known = invar::choices();
  std::vector<std::string> all(known.begin(), known.end()), wanted;
  if (text == "all") return all;
  if (text == "none") return wanted;
  SmallVector<llvm::StringRef> names;
  llvm::StringRef(text).split(names, ',');
  for (llvm::StringRef name : names) {
    if (!llvm::is_contained(all, name)) {
      std::string list;
      for (const std::string& one : all) list += (list.empty() ? "" : ", ") + one;
      return bad_input("there is no numerics choice '" + name.str() + "': give all, none, or some of " +
                       list);
    }
    wanted.push_back(name.str());
  }
  return wanted;
}

std::unique_ptr<Pass> recover(std::vector<std::string> allowed) {
  return std::make_unique<Recover>(std::move(allowed));
}

}  // namespace invar::compiler
