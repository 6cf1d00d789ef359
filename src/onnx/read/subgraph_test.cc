// Graphs within nodes, and the model's own functions.
#include <functional>

#include "onnx/proto.h"
#include "onnx/testing.h"

namespace invar::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

void value(::onnx::ValueInfoProto* v, const char* name) {
  v->set_name(name);
  v->mutable_type()->mutable_tensor_type()->set_elem_type(1);
}
template <class Owner>
NodeProto* node(Owner& owner, const std::string& op, const std::vector<std::string>& in,
                const std::vector<std::string>& out) {
  NodeProto* n = owner.add_node();
  n->set_op_type(op);
  for (const auto& name : in) n->add_input(name);
  for (const auto& name : out) n->add_output(name);
  return n;
}
GraphProto* body(NodeProto& n, const char* name) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(AttributeProto::GRAPH);
  return a->mutable_g();
}
void reference(NodeProto& n, const char* name, const char* to, AttributeProto::AttributeType type) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(type);
  a->set_ref_attr_name(to);
}
FunctionProto* function(ModelProto& m, const char* name, const std::vector<std::string>& in,
                        const std::vector<std::string>& out) {
  FunctionProto* f = m.add_functions();
  f->set_name(name);
  f->set_domain("own");
  auto* set = f->add_opset_import();
  set->set_version(18);
  auto* own = f->add_opset_import();
  own->set_domain("own");
  own->set_version(1);
  for (const auto& i : in) f->add_input(i);
  for (const auto& o : out) f->add_output(o);
  return f;
}

class BodiesTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    m_.set_ir_version(10);
    m_.add_opset_import()->set_version(23);
    auto* own = m_.add_opset_import();
    own->set_domain("own");
    own->set_version(1);
    value(m_.mutable_graph()->add_input(), "x");
    value(m_.mutable_graph()->add_output(), "y");
  }
  GraphProto& graph() { return *m_.mutable_graph(); }
  Result<Graph> read_it() {
    put("m.onnx", m_.SerializeAsString());
    return read(path("m.onnx"));
  }
  NodeProto* call(const char* name, const std::vector<std::string>& in, const std::vector<std::string>& out) {
    NodeProto* n = node(graph(), name, in, out);
    n->set_domain("own");
    return n;
  }
  // An If whose branches give `t`, computed from `reads`.
  void branch(const std::string& reads, const std::string& defines = "t") {
    NodeProto* n = node(graph(), "If", {"x"}, {"y"});
    n->set_name("choice");
    for (const char* name : {"then_branch", "else_branch"}) {
      GraphProto* g = body(*n, name);
      node(*g, "Relu", {reads}, {defines});
      g->add_output()->set_name(defines);
    }
  }
  ModelProto m_;
};

TEST_F(BodiesTest, CapturesAreUsesOfTheirNode) {
  branch("late");
  node(graph(), "Neg", {"x"}, {"late"});
  auto g = read_it();
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->nodes[0].op_type, "Neg");
  ASSERT_EQ(g->nodes[1].bodies.size(), 2u);
  EXPECT_EQ(g->nodes[1].bodies[0].attribute, "then_branch");
  EXPECT_EQ(g->nodes[1].bodies[0].graph.nodes[0].inputs[0], "late");
}

TEST_F(BodiesTest, WrongNamesWithinGraphs) {
  branch("gone");
  expect_error(read_it(), Code::bad_input,
               {"'choice'", "'then_branch'", "reads 'gone', which nothing defines"});
  graph().clear_node();
  branch("y");  // what the node itself gives
  expect_error(read_it(), Code::bad_input, {"cycle: node 'choice' ('If') -> node 'choice' ('If')"});
  graph().clear_node();
  branch("x", "x");
  expect_error(read_it(), Code::bad_input, {"'then_branch'", "defines 'x', which is already defined"});
  graph().clear_node();
  branch("x");
  graph().mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_output(0)->set_name("gone");
  expect_error(read_it(), Code::bad_input, {"'else_branch'", "output 'gone' is defined by nothing"});
}

TEST_F(BodiesTest, GraphsInGraphsEnd) {
  NodeProto* n = node(graph(), "If", {"x"}, {"y"});
  for (int i = 0; i < 30; ++i) {
    GraphProto* g = body(*n, "then_branch");
    g->add_output()->set_name("x");
    n = node(*g, "If", {"x"}, {"t" + std::to_string(i)});
  }
  expect_error(read_it(), Code::not_covered, {"lies in more than 24 graphs"});
}

TEST_F(BodiesTest, CallsBecomeBodies) {
  FunctionProto* f = function(m_, "Scaled", {"a", "b"}, {"r", "b", "unused"});
  f->add_attribute("alpha");
  f->add_attribute("beta");
  reference(*node(*f, "LeakyRelu", {"a"}, {"t"}), "alpha", "alpha", AttributeProto::FLOAT);
  reference(*node(*f, "Elu", {"t"}, {"r"}), "alpha", "beta", AttributeProto::FLOAT);
  node(*f, "Neg", {"b"}, {"unused"});
  NodeProto* c = call("Scaled", {"x"}, {"first"});
  auto* a = c->add_attribute();
  a->set_name("alpha");
  a->set_type(AttributeProto::FLOAT);
  a->set_f(0.5f);
  call("Scaled", {"first", "x"}, {"y", "passed"});
  auto g = read_it();
  ASSERT_TRUE(g) << g.error().message;
  ASSERT_EQ(g->nodes.size(), 7u);
  EXPECT_EQ(g->nodes[0].inputs[0], "x");
  EXPECT_EQ(g->nodes[0].opset, 18);
  EXPECT_EQ(std::get<float>(g->nodes[0].attributes.at("alpha")), 0.5f);
  EXPECT_EQ(g->nodes[1].outputs[0], "first");
  EXPECT_TRUE(g->nodes[1].attributes.empty());  // neither given nor with a default
  EXPECT_EQ(g->nodes[2].inputs[0], "");         // the call does not give it
  EXPECT_NE(g->nodes[0].outputs[0], g->nodes[3].outputs[0]);
  EXPECT_EQ(g->nodes.back().op_type, "Identity");
  EXPECT_EQ(g->nodes.back().inputs[0], "x");
  EXPECT_EQ(g->nodes.back().outputs[0], "passed");
}

TEST_F(BodiesTest, DefaultsOfAttributes) {
  FunctionProto* f = function(m_, "F", {"a"}, {"r"});
  reference(*node(*f, "LeakyRelu", {"a"}, {"r"}), "alpha", "alpha", AttributeProto::FLOAT);
  AttributeProto standard;
  standard.set_name("alpha");
  standard.set_type(AttributeProto::FLOAT);
  standard.set_f(0.25f);
  const std::string bytes = standard.SerializeAsString();
  // attribute_proto is field 11, which the installed onnx.proto may not know.
  const std::string field = std::string("\x5a", 1) + static_cast<char>(bytes.size()) + bytes;
  const std::string both = f->SerializeAsString() + field;
  ASSERT_TRUE(f->ParseFromString(both));
  call("F", {"x"}, {"y"});
  auto g = read_it();
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(std::get<float>(g->nodes[0].attributes.at("alpha")), 0.25f);
}

TEST_F(BodiesTest, WrongFunctions) {
  struct {
    const char* reason;
    std::function<void()> change;
  } cases[] = {
      {"function 'F' calls itself",
       [&] { node(*m_.mutable_functions(0), "F", {"a"}, {"t"})->set_domain("own"); }},
      {"function 'F' calls itself",
       [&] {
         NodeProto* n = node(*m_.mutable_functions(0), "If", {"a"}, {"t"});
         GraphProto* g = body(*n, "then_branch");
         node(*g, "F", {"a"}, {"s"})->set_domain("own");
         g->add_output()->set_name("s");
       }},
      {"has not as many inputs", [&] { graph().mutable_node(0)->add_input("x"); }},
      {"has not as many inputs", [&] { graph().mutable_node(0)->add_output("z"); }},
      {"attribute 'alpha' is given twice, or function 'F' has none",
       [&] {
         auto* a = graph().mutable_node(0)->add_attribute();
         a->set_name("alpha");
         a->set_type(AttributeProto::INT);
       }},
      {"refers to 'beta', which is no attribute of function 'F'",
       [&] { reference(*m_.mutable_functions(0)->mutable_node(0), "alpha", "beta", AttributeProto::INT); }},
      {"which nothing defines", [&] { m_.mutable_functions(0)->mutable_node(0)->set_input(0, "x"); }},
      {"defines 'a', which is already defined", [&] { node(*m_.mutable_functions(0), "Neg", {"r"}, {"a"}); }},
      {"has an input twice", [&] { m_.mutable_functions(0)->add_input("a"); }},
      {"has output 'r' twice", [&] { m_.mutable_functions(0)->add_output("r"); }},
      {"is defined twice", [&] { function(m_, "F", {"a"}, {"r"}); }},
      {"the function imports no opset", [&] { m_.mutable_functions(0)->clear_opset_import(); }},
      {"outside a function",
       [&] { reference(*node(graph(), "Relu", {"x"}, {"z"}), "a", "b", AttributeProto::INT); }},
  };
  const ModelProto empty = m_;
  for (const auto& c : cases) {
    m_ = empty;
    node(*function(m_, "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
    call("F", {"x"}, {"y"});
    EXPECT_TRUE(read_it());
    c.change();
    expect_error(read_it(), Code::bad_input, {c.reason});
  }
}

TEST_F(BodiesTest, FunctionsDoNotGrowWithoutBound) {
  // Each calls the next twice: 2^40 nodes.
  constexpr int n = 40;
  for (int i = 0; i < n; ++i) {
    FunctionProto* f = function(m_, ("F" + std::to_string(i)).c_str(), {"a"}, {"r"});
    const std::string next = i + 1 < n ? "F" + std::to_string(i + 1) : "Relu";
    for (auto [in, out] : {std::pair("a", "t"), std::pair("t", "r")})
      node(*f, next, {in}, {out})->set_domain(i + 1 < n ? "own" : "");
  }
  call("F0", {"x"}, {"y"});
  expect_error(read_it(), Code::not_covered, {"its functions make more than 131072 nodes"});
  // A chain of calls, each once.
  m_.clear_functions();
  for (int i = 0; i < 100; ++i) {
    FunctionProto* f = function(m_, ("F" + std::to_string(i)).c_str(), {"a"}, {"r"});
    node(*f, i < 99 ? "F" + std::to_string(i + 1) : "Relu", {"a"}, {"r"})->set_domain(i < 99 ? "own" : "");
  }
  expect_error(read_it(), Code::not_covered, {"in more than 64 others"});
}

}  // namespace
}  // namespace invar::onnx
