// TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of ai.onnx.ml: their attributes
// become the constants of one operation, and its sums scores and labels.
#include <set>
#include <unordered_map>

#include "compiler/lowering/builders/ml_scores.h"

namespace invar::compiler {
namespace {

enum Aggregation : int64_t { kSum, kAverage, kMin, kMax };
constexpr int32_t kUnordered = 8;

// A tree as the model has it: branches and leaves by number, and the entries of leaves.
struct TreeSource {
  struct Node {
    bool leaf = false;
    int64_t feature = 0;
    int32_t outcomes = 0;  // as the operation has them
    double threshold = 0;
    std::vector<double> members;  // BRANCH_MEMBER: the numbers that take the true side
    int64_t if_true = 0, if_false = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::vector<std::pair<int32_t, double>>> entries;  // of node i: target, weight
  std::vector<int64_t> roots;
};

// The constants of the operation.
struct TreeConstants {
  std::vector<int32_t> nodes, roots, targets;
  std::vector<double> thresholds, weights;
  int64_t features = 0;
};

// The outcomes of a mode's comparison that take the true side: less 1, equal 2, greater 4, NaN 8.
std::optional<int32_t> outcomes_of(llvm::StringRef mode) {
  if (mode == "BRANCH_LEQ") return 3;
  if (mode == "BRANCH_LT") return 1;
  if (mode == "BRANCH_GTE") return 6;
  if (mode == "BRANCH_GT") return 4;
  if (mode == "BRANCH_EQ") return 2;
  if (mode == "BRANCH_NEQ") return 13;
  return std::nullopt;
}

void add_node(TreeConstants& out, int32_t feature, int32_t outcomes, int32_t p, int32_t q, double threshold) {
  out.nodes.insert(out.nodes.end(), {feature, outcomes, p, q});
  out.thresholds.push_back(threshold);
}

// Puts each tree's nodes so that every step leads forward: first the node, then its true side.
Result<TreeConstants> laid_out(const TreeSource& source) {
  constexpr size_t kMost = size_t{1} << 28;
  TreeConstants out;
  std::vector<char> seen(source.nodes.size());
  struct Visit {
    int64_t node;
    std::vector<size_t> from;  // places of steps to it: index into out.nodes
  };
  for (const int64_t root : source.roots) {
    out.roots.push_back(static_cast<int32_t>(out.thresholds.size()));
    std::vector<Visit> stack = {{root, {}}};
    while (!stack.empty()) {
      const Visit visit = std::move(stack.back());
      stack.pop_back();
      const TreeSource::Node& n = source.nodes[static_cast<size_t>(visit.node)];
      const auto at = static_cast<int32_t>(out.thresholds.size());
      for (size_t place : visit.from) out.nodes[place] = at - static_cast<int32_t>(place / 4);
      if (out.thresholds.size() > kMost) return not_covered("more than 2^28 nodes");
      if (n.leaf) {
        const auto first = static_cast<int32_t>(out.weights.size());
        for (const auto& [target, weight] : source.entries[static_cast<size_t>(visit.node)])
          out.targets.push_back(target), out.weights.push_back(weight);
        add_node(out, -1, 0, first, static_cast<int32_t>(out.weights.size()), 0);
        continue;
      }
      if (seen[static_cast<size_t>(visit.node)]++)
        return bad_input("its nodes are no trees: a branch is reached twice");
      if (n.feature < 0 || n.feature > INT32_MAX)
        return bad_input("a branch has feature " + std::to_string(n.feature));
      out.features = std::max(out.features, n.feature + 1);
      const auto feature = static_cast<int32_t>(n.feature);
      Visit if_true{n.if_true, {}}, if_false{n.if_false, {}};
      std::vector<double> members = n.members;
      if (members.empty()) members = {n.threshold};
      // Of a set of numbers each is a branch, whose false side is the next one.
      for (size_t i = 0; i < members.size(); ++i) {
        const size_t place = out.nodes.size();
        add_node(out, feature, n.outcomes, 0, 1, members[i]);
        if_true.from.push_back(place + 2);
        if (i + 1 == members.size()) if_false.from.push_back(place + 3);
      }
      stack.push_back(std::move(if_false));
      stack.push_back(std::move(if_true));
    }
  }
  return out;
}

int64_t key_of(int64_t tree, int64_t node) {
  return static_cast<int64_t>(static_cast<uint64_t>(tree) << 32 ^ static_cast<uint64_t>(node & 0xffffffff));
}

// The attributes of TreeEnsembleClassifier (kind "class") and TreeEnsembleRegressor ("target").
Result<TreeSource> lists_of(NodeView& node, const std::string& kind) {
  INVAR_TRY(const std::vector<int64_t> trees, node.ints_attr("nodes_treeids"));
  INVAR_TRY(const std::vector<int64_t> ids, node.ints_attr("nodes_nodeids"));
  INVAR_TRY(const std::vector<int64_t> features, node.ints_attr("nodes_featureids"));
  INVAR_TRY(const std::vector<int64_t> if_true, node.ints_attr("nodes_truenodeids"));
  INVAR_TRY(const std::vector<int64_t> if_false, node.ints_attr("nodes_falsenodeids"));
  INVAR_TRY(const std::vector<int64_t> missing, node.ints_attr("nodes_missing_value_tracks_true"));
  INVAR_TRY(const std::vector<std::string> modes, strings_attr(node, "nodes_modes"));
  INVAR_TRY(const std::vector<double> values, numbers_attr(node, "nodes_values"));
  const size_t n = trees.size();
  for (size_t size :
       {ids.size(), features.size(), if_true.size(), if_false.size(), modes.size(), values.size()})
    if (size != n || n == 0) return bad_input("its lists of nodes differ in length or are empty");
  if (!missing.empty() && missing.size() != n)
    return bad_input("attribute \"nodes_missing_value_tracks_true\" is not a number for each node");
  TreeSource source;
  source.nodes.resize(n), source.entries.resize(n);
  std::unordered_map<int64_t, int64_t> index;
  std::set<int64_t> known;
  for (size_t i = 0; i < n; ++i) {
    if (trees[i] < 0 || trees[i] > INT32_MAX || ids[i] < 0 || ids[i] > INT32_MAX)
      return bad_input("a node has number " + std::to_string(ids[i]) + " in tree " +
                       std::to_string(trees[i]));
    if (!index.emplace(key_of(trees[i], ids[i]), static_cast<int64_t>(i)).second)
      return bad_input("node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]) +
                       " is there twice");
    if (known.insert(trees[i]).second) source.roots.push_back(static_cast<int64_t>(i));
  }
  const auto find = [&](int64_t tree, int64_t id) -> Result<int64_t> {
    const auto at = index.find(key_of(tree, id));
    if (at == index.end())
      return bad_input("tree " + std::to_string(tree) + " has no node " + std::to_string(id));
    return at->second;
  };
  for (size_t i = 0; i < n; ++i) {
    TreeSource::Node& to = source.nodes[i];
    if ((to.leaf = modes[i] == "LEAF")) continue;
    const std::optional<int32_t> outcomes = outcomes_of(modes[i]);
    if (!outcomes) return not_covered("mode \"" + modes[i] + "\"");
    const bool tracks = !missing.empty() && missing[i] == 1;
    if (tracks && values[i] != values[i])
      return not_covered("a threshold that is NaN where missing values are true");
    to.outcomes = *outcomes | (tracks ? kUnordered : 0);
    to.feature = features[i], to.threshold = values[i];
    INVAR_TRY(to.if_true, find(trees[i], if_true[i]));
    INVAR_TRY(to.if_false, find(trees[i], if_false[i]));
  }
  INVAR_TRY(const std::vector<int64_t> leaf_trees, node.ints_attr(kind + "_treeids"));
  INVAR_TRY(const std::vector<int64_t> leaf_nodes, node.ints_attr(kind + "_nodeids"));
  INVAR_TRY(const std::vector<int64_t> targets, node.ints_attr(kind + "_ids"));
  INVAR_TRY(const std::vector<double> weights, numbers_attr(node, kind + "_weights"));
  for (size_t size : {leaf_nodes.size(), targets.size(), weights.size()})
    if (size != leaf_trees.size()) return bad_input("its lists of leaves differ in length");
  for (size_t i = 0; i < targets.size(); ++i) {
    INVAR_TRY(const int64_t at, find(leaf_trees[i], leaf_nodes[i]));
    if (targets[i] < 0 || targets[i] > INT32_MAX)
      return bad_input("a leaf is for " + kind + " " + std::to_string(targets[i]));
    source.entries[static_cast<size_t>(at)].emplace_back(static_cast<int32_t>(targets[i]), weights[i]);
  }
  return source;
}

// The operation on the rows of operand 0, of one column per number of base.
Result<Value> aggregated(NodeView& node, const TreeConstants& trees, const std::vector<double>& base,
                         int64_t aggregate) {
  INVAR_TRY(Value x, feature_rows(node));
  for (int32_t target : trees.targets)
    if (target >= static_cast<int64_t>(base.size()))
      return bad_input("a leaf is for column " + std::to_string(target) + " of " +
                       std::to_string(base.size()));
  const Dim width = shape_of(x.getType())[1];
  if (width.constant() && width.value < trees.features)
    return bad_input("it reads feature " + std::to_string(trees.features - 1) + " of " +
                     std::to_string(width.value));
  // A call with fewer columns fails.
  if (!width.constant()) {
    std::vector<int64_t> columns;
    for (int64_t i = 0; i < trees.features; ++i) columns.push_back(i);
    INVAR_TRY(x, node.make<GatherOp>({x, node.constant(columns)}, node.attr("axis", int64_t{1})));
  }
  const Type element = element_of(x);
  return node.make<TreeEnsembleOp>(
      {x, int32_list(node, trees.nodes, {static_cast<int64_t>(trees.thresholds.size()), 4}),
       float_list(node, trees.thresholds, element), int32_list(node, trees.roots),
       int32_list(node, trees.targets), float_list(node, trees.weights, element),
       float_list(node, base, element)},
      node.attr("aggregate", aggregate));
}

// Scores in f32, in which links are computed.
Result<Value> scores_of(NodeView& node, const TreeConstants& trees, const std::vector<double>& base,
                        int64_t aggregate = kSum) {
  INVAR_TRY(const Value sums, aggregated(node, trees, base, aggregate));
  return cast_to(node, sums, node.builder().getF32Type());
}

// What nodes with lists have, beside attributes of their own.
Status expect_lists(NodeView& node, std::initializer_list<llvm::StringRef> own, unsigned results) {
  SmallVector<llvm::StringRef> names = {"base_values",
                                        "base_values_as_tensor",
                                        "nodes_falsenodeids",
                                        "nodes_featureids",
                                        "nodes_hitrates",
                                        "nodes_hitrates_as_tensor",
                                        "nodes_missing_value_tracks_true",
                                        "nodes_modes",
                                        "nodes_nodeids",
                                        "nodes_treeids",
                                        "nodes_truenodeids",
                                        "nodes_values",
                                        "nodes_values_as_tensor",
                                        "post_transform"};
  names.append(own);
  return node.expect(1, 1, names, results);
}

Status regressor(NodeView& node) {
  INVAR_CHECK_OK(expect_lists(node,
                              {"aggregate_function", "n_targets", "target_ids", "target_nodeids",
                               "target_treeids", "target_weights", "target_weights_as_tensor"},
                              1));
  INVAR_TRY(const int64_t aggregate, enum_attr(node, "aggregate_function", "SUM AVERAGE MIN MAX", "SUM"));
  INVAR_TRY(const int64_t targets, node.int_attr("n_targets", 1));
  if (targets < 1 || targets > (1 << 20)) return bad_input("n_targets is " + std::to_string(targets));
  INVAR_TRY(std::vector<double> base, numbers_attr(node, "base_values"));
  if (base.size() != static_cast<size_t>(targets)) {
    if (!base.empty()) return bad_input("attribute \"base_values\" is not a number for each target");
    base.assign(static_cast<size_t>(targets), 0.0);
  }
  INVAR_TRY(Link link, link_attr(node));
  // Runtimes apply no other link to one target.
  if (targets == 1 && link != Link::probit) link = Link::none;
  INVAR_TRY(const TreeSource source, lists_of(node, "target"));
  INVAR_TRY(const TreeConstants trees, laid_out(source));
  INVAR_TRY(Value scores, scores_of(node, trees, base, aggregate));
  INVAR_TRY(scores, linked(node, scores, link));
  return node.replace(scores);
}

// Whether every row has a weight for the class: some tree gives it one in each of its leaves.
std::vector<bool> classes_always_scored(const TreeConstants& trees, size_t classes) {
  std::vector<bool> always(classes);
  for (size_t t = 0; t < trees.roots.size(); ++t) {
    const size_t first = static_cast<size_t>(trees.roots[t]);
    const size_t end =
        t + 1 < trees.roots.size() ? static_cast<size_t>(trees.roots[t + 1]) : trees.thresholds.size();
    std::vector<size_t> leaves_with(classes);
    size_t leaves = 0;
    for (size_t i = first; i < end; ++i) {
      if (trees.nodes[4 * i] >= 0) continue;
      ++leaves;
      std::set<int32_t> here;
      for (int32_t e = trees.nodes[4 * i + 2]; e < trees.nodes[4 * i + 3]; ++e)
        here.insert(trees.targets[static_cast<size_t>(e)]);
      for (int32_t c : here) ++leaves_with[static_cast<size_t>(c)];
    }
    for (size_t c = 0; c < classes; ++c)
      if (leaves_with[c] == leaves) always[c] = true;
  }
  return always;
}

// The best of the classes that a leaf speaks of (onnx.52).
Result<Value> best_scored_class(NodeView& node, TreeConstants trees, Value scores, size_t classes) {
  const std::vector<bool> always = classes_always_scored(trees, classes);
  if (std::find(always.begin(), always.end(), false) == always.end()) return best_class(node, scores);
  std::fill(trees.weights.begin(), trees.weights.end(), 1.0);
  INVAR_TRY(const Value counts, scores_of(node, trees, std::vector<double>(classes, 0.0)));
  ExprBuilder f(node);
  const Value eligible = f.where(f.less(f.f32(0), counts), scores, f.f32(-__builtin_inff()));
  INVAR_CHECK_OK(f.status());
  return best_class(node, eligible);
}

struct Classified {
  Value classes, scores;  // [N], [N, C]
};

// Two classes, as onnxruntime scores them (onnx.52).
Result<Classified> binary(NodeView& node, const TreeConstants& trees, const std::vector<double>& base,
                          Link link) {
  const std::set<int32_t> used(trees.targets.begin(), trees.targets.end());
  const bool one_class = used.size() == 1, second = used.contains(1);
  const bool positive =
      std::all_of(trees.weights.begin(), trees.weights.end(), [](double w) { return w >= 0; });
  std::vector<double> add = {0, 0};
  if (base.size() == 1) add[0] = base[0];
  if (base.size() == 2 && !second) add = base;
  INVAR_TRY(Value scores, scores_of(node, trees, add));
  ExprBuilder f(node);
  Value first = f.slice(scores, 1, 0, 1), other = f.slice(scores, 1, 1, 1);
  if (base.size() == 2 && second) {
    other = f.add(f.f32(static_cast<float>(base[1])), first);
    first = f.make<NegOp>({other});
  }
  const Value decides = second ? other : first;
  const bool pair = second || base.size() == 2;
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Value classes, class_above(node, decides, one_class && positive ? 0.5f : 0.0f));
  if (pair) {
    INVAR_TRY(Value both, concat(node, {first, other}, 1));
    INVAR_TRY(both, linked(node, both, link));
    return Classified{classes, both};
  }
  if (link == Link::probit) return not_covered("post_transform PROBIT of one score for two classes");
  const bool logistic = link == Link::logistic;
  const Value low = positive && !logistic ? f.sub(f.f32(1), first) : f.make<NegOp>({first});
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(Value both, concat(node, {low, first}, 1));
  if (logistic) {
    INVAR_TRY(both, linked(node, both, link));
  }
  return Classified{classes, both};
}

Status classifier(NodeView& node) {
  INVAR_CHECK_OK(expect_lists(node,
                              {"class_ids", "class_nodeids", "class_treeids", "class_weights",
                               "class_weights_as_tensor", "classlabels_int64s", "classlabels_strings"},
                              2));
  INVAR_TRY(const std::vector<int64_t> labels, class_labels(node, "classlabels_int64s"));
  INVAR_TRY(const std::vector<double> base, numbers_attr(node, "base_values"));
  INVAR_TRY(const Link link, link_attr(node));
  INVAR_TRY(const TreeSource source, lists_of(node, "class"));
  INVAR_TRY(const TreeConstants trees, laid_out(source));
  const size_t classes = labels.size();
  for (int32_t c : trees.targets)
    if (static_cast<size_t>(c) >= classes)
      return bad_input("a leaf is for class " + std::to_string(c) + " of " + std::to_string(classes));
  if (classes == 1) return not_covered("a single class");
  if (base.size() > classes) return bad_input("attribute \"base_values\" has more numbers than classes");
  Classified out;
  if (classes == 2) {
    INVAR_TRY(out, binary(node, trees, base, link));
  } else {
    std::vector<double> add = base;
    add.resize(classes);
    INVAR_TRY(out.scores, scores_of(node, trees, add));
    if (base.size() == classes) {
      INVAR_TRY(out.classes, best_class(node, out.scores));
    } else {
      INVAR_TRY(out.classes, best_scored_class(node, trees, out.scores, classes));
    }
    INVAR_TRY(out.scores, linked(node, out.scores, link));
  }
  INVAR_TRY(const Value label, labels_at(node, out.classes, labels));
  node.replace(1, out.scores);
  return node.replace(label);
}

// ---- TreeEnsemble (ai.onnx.ml 5)

// A list of integers that are numbers of something.
Result<std::vector<int64_t>> numbers_below(const NodeView& node, const char* name, size_t limit) {
  INVAR_TRY(std::vector<int64_t> list, node.ints_attr(name));
  for (int64_t v : list)
    if (v < 0 || v >= static_cast<int64_t>(limit))
      return bad_input("attribute \"" + std::string(name) + "\" has " + std::to_string(v) +
                       ", and there are " + std::to_string(limit));
  return list;
}

// The modes of TreeEnsemble, in their order; the last, BRANCH_MEMBER, is a set of BRANCH_EQ.
std::optional<int32_t> outcomes_of_number(int64_t mode) {
  constexpr int32_t kOutcomes[] = {3, 1, 6, 4, 2, 13, 2};
  if (mode < 0 || mode > 6) return std::nullopt;
  return kOutcomes[mode];
}

// Branches are numbers from 0 on, and leaves follow them.
Result<TreeSource> tensors_of(NodeView& node) {
  constexpr size_t kMost = size_t{1} << 31;
  INVAR_TRY(const auto splits, tensor_numbers_attr(node, "nodes_splits"));
  INVAR_TRY(const auto modes, tensor_numbers_attr(node, "nodes_modes"));
  INVAR_TRY(const auto weights, tensor_numbers_attr(node, "leaf_weights"));
  INVAR_TRY(const auto members, tensor_numbers_attr(node, "membership_values"));
  if (!splits || !modes || !weights) return bad_input("it has no splits, modes or leaf weights");
  const size_t n = splits->size(), leaves = weights->size();
  INVAR_TRY(const std::vector<int64_t> features, numbers_below(node, "nodes_featureids", kMost));
  INVAR_TRY(const std::vector<int64_t> missing, node.ints_attr("nodes_missing_value_tracks_true"));
  INVAR_TRY(const std::vector<int64_t> targets, numbers_below(node, "leaf_targetids", kMost));
  INVAR_TRY(const std::vector<int64_t> true_ends, node.ints_attr("nodes_trueleafs"));
  INVAR_TRY(const std::vector<int64_t> false_ends, node.ints_attr("nodes_falseleafs"));
  INVAR_TRY(const std::vector<int64_t> if_true,
            numbers_below(node, "nodes_truenodeids", std::max(n, leaves)));
  INVAR_TRY(const std::vector<int64_t> if_false,
            numbers_below(node, "nodes_falsenodeids", std::max(n, leaves)));
  for (size_t size : {modes->size(), features.size(), true_ends.size(), false_ends.size(), if_true.size(),
                      if_false.size(), missing.empty() ? n : missing.size()})
    if (size != n || n == 0) return bad_input("its lists of nodes differ in length or are empty");
  if (targets.size() != leaves || leaves == 0)
    return bad_input("its lists of leaves differ in length or are empty");
  TreeSource source;
  source.nodes.resize(n + leaves), source.entries.resize(n + leaves);
  size_t next_member = 0;
  const auto side = [&](int64_t to, int64_t ends) -> Result<int64_t> {
    if (to >= static_cast<int64_t>(ends ? leaves : n)) return bad_input("a branch leads to no node");
    return ends ? static_cast<int64_t>(n) + to : to;
  };
  for (size_t i = 0; i < n; ++i) {
    TreeSource::Node& to = source.nodes[i];
    const std::optional<int32_t> outcomes = outcomes_of_number(static_cast<int64_t>((*modes)[i]));
    if (!outcomes) return bad_input("mode " + std::to_string(static_cast<int64_t>((*modes)[i])));
    const bool tracks = !missing.empty() && missing[i] == 1, member = (*modes)[i] == 6;
    to.threshold = (*splits)[i], to.feature = features[i];
    if (tracks && !member && to.threshold != to.threshold)
      return not_covered("a threshold that is NaN where missing values are true");
    to.outcomes = *outcomes | (tracks ? kUnordered : 0);
    // Each set of members ends with NaN.
    for (; member && members && next_member < members->size(); ++next_member) {
      const double v = (*members)[next_member];
      if (v != v) break;
      to.members.push_back(v);
    }
    if (member) ++next_member;
    if (member && to.members.empty()) return not_covered("BRANCH_MEMBER of an empty set");
    INVAR_TRY(to.if_true, side(if_true[i], true_ends[i]));
    INVAR_TRY(to.if_false, side(if_false[i], false_ends[i]));
  }
  for (size_t i = 0; i < leaves; ++i) {
    source.nodes[n + i].leaf = true;
    source.entries[n + i].emplace_back(static_cast<int32_t>(targets[i]), (*weights)[i]);
  }
  INVAR_TRY(source.roots, numbers_below(node, "tree_roots", n));
  return source;
}

Status tree_ensemble_5(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(1, 1,
                  {"aggregate_function", "leaf_targetids", "leaf_weights", "membership_values", "n_targets",
                   "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates",
                   "nodes_missing_value_tracks_true", "nodes_modes", "nodes_splits", "nodes_trueleafs",
                   "nodes_truenodeids", "post_transform", "tree_roots"}));
  constexpr Aggregation kAggregations[] = {kAverage, kSum, kMin, kMax};
  constexpr Link kLinks[] = {Link::none, Link::exponential, Link::logistic, Link::exponential_zero,
                             Link::probit};
  INVAR_TRY(const int64_t aggregate, node.int_attr("aggregate_function", 1));
  INVAR_TRY(const int64_t transform, node.int_attr("post_transform", 0));
  INVAR_TRY(const int64_t targets, node.int_attr("n_targets", 1));
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4 || targets < 1 || targets > (1 << 20))
    return bad_input("an attribute is outside of its range");
  Link link = kLinks[transform];
  if (targets == 1 && link != Link::probit) link = Link::none;
  INVAR_TRY(const TreeSource source, tensors_of(node));
  INVAR_TRY(const TreeConstants trees, laid_out(source));
  const std::vector<double> base(static_cast<size_t>(targets), 0.0);
  INVAR_TRY(Value scores, aggregated(node, trees, base, kAggregations[aggregate]));
  if (link == Link::none) return node.replace(scores);
  const Type element = element_of(scores);
  INVAR_TRY(scores, cast_to(node, scores, node.builder().getF32Type()));
  INVAR_TRY(scores, linked(node, scores, link));
  INVAR_TRY(scores, cast_to(node, scores, element));
  return node.replace(scores);
}

}  // namespace

void decompose_ml_trees(RuleRegistry& registry) {
  registry.add_rule("ai.onnx.ml.TreeEnsemble", 5, tree_ensemble_5);
  registry.add_rule("ai.onnx.ml.TreeEnsembleClassifier", 1, classifier);
  registry.add_rule("ai.onnx.ml.TreeEnsembleRegressor", 1, regressor);
}

}  // namespace invar::compiler
