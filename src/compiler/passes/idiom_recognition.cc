// repro-recognize-idioms: replaces operations that exporters decompose by single ones, as the
// allowed numerics choices permit (spec/choices.md). The pass runs before every rewrite, so that
// its result does not depend on the optimization level.
#include "compiler/passes/idiom_recognition.h"

#include "base/opset.h"
#include "base/profile.h"
#include "compiler/dialects/origin.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"
#include "onnx/recipe.h"
#include "rooms.inc"

namespace invar::compiler {
namespace {

// Not among "all": it is applied where it is asked for by name (choices.13).
constexpr char kIntegerChoice[] = "integer-1";

struct Idiom {
  llvm::StringRef choice;
  Recognizer recognize;
};
#define INVAR_IDIOM(name, choice) {choice, recognize_##name},
constexpr Idiom kIdioms[] = {INVAR_IDIOMS};
#undef INVAR_IDIOM

class RecognizeIdioms : public PassWrapper<RecognizeIdioms, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecognizeIdioms)
  explicit RecognizeIdioms(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}
  StringRef getArgument() const final { return "repro-recognize-idioms"; }
  StringRef getDescription() const final { return "Replace decomposed operations by single ones"; }
  void runOnOperation() final;

 private:
  bool apply(const Idiom&);
  std::vector<std::string> allowed_;
  std::set<std::string> applied_to_;  // entries of kAppliedChoicesAttr
};

// "NUMBER CHOICE" and the binary32 attributes of the operation, which say what a pattern took in.
std::string applied_choice(llvm::StringRef choice, Operation* made) {
  const std::string number = node_number_of(made->getLoc());
  if (number.empty()) return "";
  std::string text = number + " " + choice.str();
  for (const NamedAttribute& a : made->getAttrs())
    if (auto v = dyn_cast<FloatAttr>(a.getValue()))
      text += " " + a.getName().str() + "=" + onnx::parameter(static_cast<float>(v.getValueAsDouble()));
  return text;
}

bool RecognizeIdioms::apply(const Idiom& idiom) {
  Block& block = getOperation().front();
  DerivedValueCache context;
  bool found = false;
  erase_dead_ops(block);
  for (Operation& op : block)
    if (isa<ReproOp>(op) && idiom.recognize(&op, context)) {
      found = true;
      for (Operation* made : context.made) applied_to_.insert(applied_choice(idiom.choice, made));
      context.made.clear();
    }
  return found;
}

void RecognizeIdioms::runOnOperation() {
  std::set<std::string> applied;
  applied_to_.clear();
  for (const Idiom& idiom : kIdioms)
    if (llvm::is_contained(allowed_, idiom.choice) && apply(idiom)) applied.insert(idiom.choice.str());
  if (applied.empty()) return;
  erase_dead_ops(getOperation().front());
  Builder build(&getContext());
  applied_to_.erase("");
  SmallVector<llvm::StringRef> names(applied.begin(), applied.end()),
      nodes(applied_to_.begin(), applied_to_.end());
  getOperation()->setAttr(kChoicesAttr, build.getStrArrayAttr(names));
  if (!nodes.empty()) getOperation()->setAttr(kAppliedChoicesAttr, build.getStrArrayAttr(nodes));
}

}  // namespace

Result<std::vector<std::string>> choices_of(std::string_view text) {
  const auto known = invar::choices();
  std::vector<std::string> all(known.begin(), known.end()), wanted;
  std::erase(all, kExact16Choice);  // no pattern: the profile decides
  std::vector<std::string> unless_named = all;
  std::erase(unless_named, kIntegerChoice);
  if (text == "none") return wanted;
  SmallVector<llvm::StringRef> names;
  llvm::StringRef(text).split(names, ',');
  for (llvm::StringRef name : names) {
    if (name == "all") {
      wanted.insert(wanted.end(), unless_named.begin(), unless_named.end());
      continue;
    }
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

std::unique_ptr<Pass> recognize_idioms_pass(std::vector<std::string> allowed) {
  return std::make_unique<RecognizeIdioms>(std::move(allowed));
}

}  // namespace invar::compiler
