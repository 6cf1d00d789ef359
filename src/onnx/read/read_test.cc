// Tests of reading models.
#include <functional>

#include "base/file/file.h"
#include "onnx/onnx.h"
#include "onnx/proto.h"
#include "onnx/testing.h"

namespace invar::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::ModelProto;
using ::onnx::TensorProto;

// x -> a (Relu) -> b (Add with w) -> y
ModelProto small() {
  ModelProto m;
  m.set_ir_version(10);
  m.add_opset_import()->set_version(23);
  auto* g = m.mutable_graph();
  g->set_name("g");
  auto tensor = [](::onnx::ValueInfoProto* v, const char* name) {
    v->set_name(name);
    auto* t = v->mutable_type()->mutable_tensor_type();
    t->set_elem_type(1);
    t->mutable_shape()->add_dim()->set_dim_param("n");
    t->mutable_shape()->add_dim()->set_dim_value(2);
    t->mutable_shape()->add_dim();
  };
  tensor(g->add_input(), "x");
  tensor(g->add_output(), "y");
  auto* w = g->add_initializer();
  w->set_name("w");
  w->set_data_type(1);
  w->add_dims(2);
  w->set_raw_data("12345678");
  auto* a = g->add_node();
  a->set_name("first");
  a->set_op_type("Relu");
  a->add_input("x");
  a->add_output("t");
  auto* b = g->add_node();
  b->set_op_type("Add");
  b->add_input("t");
  b->add_input("w");
  b->add_output("y");
  return m;
}

class ReadTest : public FolderTest {
 protected:
  Result<Graph> read_changed(const std::function<void(ModelProto&)>& change) {
    ModelProto m = small();
    change(m);
    put("m.onnx", m.SerializeAsString());
    return read(path("m.onnx"));
  }
  // The small model whose w lies in another file.
  Result<Graph> read_external(const std::string& location, const std::string& offset,
                              const std::string& length) {
    return read_changed([&](ModelProto& m) {
      auto* w = m.mutable_graph()->mutable_initializer(0);
      w->clear_raw_data();
      w->set_data_location(TensorProto::EXTERNAL);
      for (auto [key, value] :
           {std::pair("location", location), std::pair("offset", offset), std::pair("length", length)}) {
        if (value.empty()) continue;
        auto* e = w->add_external_data();
        e->set_key(key);
        e->set_value(value);
      }
    });
  }
};

TEST_F(ReadTest, ReadsTheSmallModel) {
  auto g = read_changed([](ModelProto&) {});
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->opsets, (std::map<std::string, int64_t>{{"", 23}}));
  ASSERT_EQ(g->inputs.size(), 1u);
  EXPECT_EQ(g->inputs[0].shape[0].name, "n");
  EXPECT_EQ(g->inputs[0].shape[1].value, 2);
  EXPECT_EQ(g->inputs[0].shape[2].value, -1);
  EXPECT_EQ(g->initializers[0].inline_data, "12345678");
  EXPECT_EQ(g->nodes[1].inputs, (std::vector<std::string>{"t", "w"}));
}

TEST_F(ReadTest, InitialisersAreNotInputs) {
  auto g = read_changed([](ModelProto& m) {
    auto* v = m.mutable_graph()->add_input();
    *v = m.graph().input(0);
    v->set_name("w");
  });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->inputs.size(), 1u);
}

TEST_F(ReadTest, SortsNodes) {
  auto g = read_changed([](ModelProto& m) { m.mutable_graph()->mutable_node()->SwapElements(0, 1); });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->nodes[0].op_type, "Relu");
}

TEST_F(ReadTest, WrittenAgainItIsTheSame) {
  auto g = read_changed([](ModelProto& m) {
    auto* n = m.mutable_graph()->mutable_node(0);
    auto add = [&](const char* name, AttributeProto::AttributeType type) {
      auto* a = n->add_attribute();
      a->set_name(name);
      a->set_type(type);
      return a;
    };
    add("i", AttributeProto::INT)->set_i(-7);
    add("f", AttributeProto::FLOAT)->set_f(-0.0f);
    add("s", AttributeProto::STRING)->set_s(std::string("\0x", 2));
    add("is", AttributeProto::INTS)->add_ints(INT64_MIN);
    add("none", AttributeProto::INTS);
    add("fs", AttributeProto::FLOATS)->add_floats(1e-45f);
    add("ss", AttributeProto::STRINGS)->add_strings("");
    *add("t", AttributeProto::TENSOR)->mutable_t() = m.graph().initializer(0);
    auto* p = m.add_metadata_props();
    p->set_key("k");
    p->set_value("v");
  });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->nodes[0].attributes.size(), 8u);
  EXPECT_EQ(std::get<int64_t>(g->nodes[0].attributes.at("i")), -7);
  EXPECT_EQ(std::get<TensorRef>(g->nodes[0].attributes.at("t")).inline_data, "12345678");
  ASSERT_TRUE(write(*g, path("one.onnx")));
  auto again = read(path("one.onnx"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->metadata, g->metadata);
  ASSERT_TRUE(write(*again, path("two.onnx")));
  EXPECT_EQ(*read_file(path("one.onnx")), *read_file(path("two.onnx")));
}

TEST_F(ReadTest, OtherAttributesAreKeptByKind) {
  auto g = read_changed([](ModelProto& m) {
    auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
    a->set_name("body");
    a->set_type(AttributeProto::GRAPHS);
  });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->nodes[0].other_attributes.at("body"), "graphs");
  expect_error(write(*g, path("o.onnx")), Code::not_covered, {"'first'", "'body'", "graphs"});
}

TEST_F(ReadTest, TypedFieldsBecomeLittleEndianBytes) {
  struct {
    int type;
    std::function<void(TensorProto*)> fill;
    std::string bytes;
  } cases[] = {
      {1, [](TensorProto* t) { t->add_float_data(1), t->add_float_data(-2); },
       std::string("\0\0\x80\x3f\0\0\0\xc0", 8)},
      {7, [](TensorProto* t) { t->add_int64_data(-1), t->add_int64_data(258); },
       std::string("\xff\xff\xff\xff\xff\xff\xff\xff\2\1\0\0\0\0\0\0", 16)},
      {16, [](TensorProto* t) { t->add_int32_data(0x3f80), t->add_int32_data(0xc000); },
       std::string("\x80\x3f\0\xc0", 4)},
      {3, [](TensorProto* t) { t->add_int32_data(-1), t->add_int32_data(5); }, std::string("\xff\5", 2)},
      {12, [](TensorProto* t) { t->add_uint64_data(1), t->add_uint64_data(0xffffffff); },
       std::string("\1\0\0\0\xff\xff\xff\xff", 8)},
      {22, [](TensorProto* t) { t->add_int32_data(0x21); }, "\x21"},
  };
  for (const auto& c : cases) {
    auto g = read_changed([&](ModelProto& m) {
      auto* w = m.mutable_graph()->mutable_initializer(0);
      w->clear_raw_data();
      w->set_data_type(c.type);
      c.fill(w);
    });
    ASSERT_TRUE(g) << g.error().message;
    EXPECT_EQ(g->initializers[0].inline_data, c.bytes) << c.type;
  }
}

TEST_F(ReadTest, RefusesWrongModels) {
  struct {
    const char* reason;
    std::function<void(ModelProto&)> change;
  } cases[] = {
      {"no graph", [](ModelProto& m) { m.clear_graph(); }},
      {"IR version", [](ModelProto& m) { m.set_ir_version(0); }},
      {"no opset_import", [](ModelProto& m) { m.clear_opset_import(); }},
      {"opset of domain '' is 23 and 22", [](ModelProto& m) { m.add_opset_import()->set_version(22); }},
      {"imports no opset of the default domain",
       [](ModelProto& m) { m.mutable_opset_import(0)->set_domain("com.x"); }},
      {"cycle: node 'first' ('Relu') -> node #1 ('Add') -> node 'first' ('Relu')",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "y"); }},
      {"cycle: node #1 ('Add') -> node #1 ('Add')",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_input(0, "y"); }},
      {"reads 'gone', which nothing defines",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_input(1, "gone"); }},
      {"defines 't', which is already defined",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->set_output(0, "t"); }},
      {"defines 'w', which is already defined",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_output(0, "w"); }},
      {"defines 'w', which is already defined",
       [](ModelProto& m) {
         const TensorProto w = m.graph().initializer(0);
         *m.mutable_graph()->add_initializer() = w;
       }},
      {"output 'q' is defined by nothing",
       [](ModelProto& m) { m.mutable_graph()->mutable_output(0)->set_name("q"); }},
      {"has no name", [](ModelProto& m) { m.mutable_graph()->mutable_input(0)->clear_name(); }},
      {"negative dimension",
       [](ModelProto& m) {
         m.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(1)
             ->set_dim_value(-2);
       }},
      {"has no operator", [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->clear_op_type(); }},
      {"has 8 bytes of data, but its type and shape need 12",
       [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, 3); }},
      {"unknown element type 99",
       [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(99); }},
      {"not the shape of any tensor",
       [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, -2); }},
      {"not the shape of any tensor",
       [](ModelProto& m) {
         m.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
         m.mutable_graph()->mutable_initializer(0)->add_dims(int64_t{1} << 40);
       }},
      {"data in two fields",
       [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->add_float_data(1); }},
      {"attribute 'a' has no type",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->add_attribute()->set_name("a"); }},
      {"attribute 'a' is given twice",
       [](ModelProto& m) {
         for (int i = 0; i < 2; ++i) {
           auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
           a->set_name("a");
           a->set_type(AttributeProto::INT);
         }
       }},
  };
  for (const auto& c : cases)
    expect_error(read_changed(c.change), Code::bad_input, {path("m.onnx"), c.reason});
}

TEST_F(ReadTest, RefusesByNameWhatItCannotCarry) {
  expect_error(read_changed([](ModelProto& m) {
                 m.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("sp");
               }),
               Code::bad_input, {"sparse initialiser 'sp'", "element type 0"});
  expect_error(
      read_changed([](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_data_type(8); }),
      Code::bad_input, {"'w'", "has 0 strings"});
  expect_error(read_changed([](ModelProto& m) { m.mutable_graph()->mutable_input(0)->clear_type(); }),
               Code::not_covered, {"'x' is not a tensor"});
}

TEST_F(ReadTest, ExternalDataStaysInTheFolder) {
  put("w.bin", "0123456789");
  auto g = read_external("w.bin", "2", "8");
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->initializers[0].file, "w.bin");
  EXPECT_EQ(g->initializers[0].offset, 2u);
  EXPECT_EQ(g->initializers[0].length, 8u);
  ASSERT_TRUE(read_external("./w.bin", "", ""));
  EXPECT_EQ(read_external("./w.bin", "", "")->initializers[0].file, "w.bin");
  put("sub/w.bin", "0123456789");
  EXPECT_TRUE(read_external("sub/w.bin", "0", "8"));
  // A link beside the model is followed, wherever it leads; a deeper one is not.
  put("elsewhere", "0123456789");
  std::filesystem::create_symlink(path("elsewhere"), path("link.bin"));
  EXPECT_TRUE(read_external("link.bin", "0", "8"));
  std::filesystem::create_symlink(path("elsewhere"), path("sub/link.bin"));
  expect_error(read_external("sub/link.bin", "0", "8"), Code::bad_input, {"'w'", "passes through the link"});
  std::filesystem::create_directory_symlink(path("sub"), path("linked"));
  expect_error(read_external("linked/w.bin", "0", "8"), Code::bad_input, {"passes through the link"});
  std::filesystem::create_symlink(path("nowhere"), path("dangling"));
  expect_error(read_external("dangling", "0", "8"), Code::bad_input, {"missing", "leads nowhere"});

  expect_error(read_external("../w.bin", "0", "8"), Code::bad_input, {"'../w.bin' lies outside"});
  expect_error(read_external("sub/../../w.bin", "0", "8"), Code::bad_input, {"lies outside"});
  expect_error(read_external(path("w.bin"), "0", "8"), Code::bad_input, {"lies outside"});
  expect_error(read_external(std::string("w.bin\0x", 7), "0", "8"), Code::bad_input, {"lies outside"});
  expect_error(read_external("sub", "0", "8"), Code::bad_input, {"not a regular file"});
  expect_error(read_external("gone.bin", "0", "8"), Code::bad_input, {"'gone.bin' is missing"});
  expect_error(read_external("", "0", "8"), Code::bad_input, {"without a location"});
  expect_error(read_external("w.bin", "3", "8"), Code::bad_input,
               {"bytes 3 to 11 of 'w.bin', which has only 10"});
  expect_error(read_external("w.bin", "9223372036854775807", "8"), Code::bad_input, {"has only 10"});
  expect_error(read_external("w.bin", "9223372036854775808", "8"), Code::bad_input,
               {"not one non-negative number"});
  expect_error(read_external("w.bin", "-1", "8"), Code::bad_input, {"not one non-negative number"});
  expect_error(read_external("w.bin", "0x2", "8"), Code::bad_input, {"not one non-negative number"});
  expect_error(read_external("w.bin", "0", "9"), Code::bad_input,
               {"has 9 bytes of data, but its type and shape need 8"});
}

// A graph says this of w where w has so many columns of 2 rows: its bytes, or the place of its
// bytes.
TEST_F(ReadTest, LargeTensorsStayInTheFile) {
  for (const size_t columns : {size_t{8192}, size_t{8193}}) {
    std::string bytes(columns * 8, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 3);
    const auto graph = read_changed([&](ModelProto& m) {
      auto* w = m.mutable_graph()->mutable_initializer(0);
      w->set_doc_string("large");
      w->add_dims(static_cast<int64_t>(columns));
      w->set_raw_data(bytes);
    });
    ASSERT_TRUE(graph) << graph.error().message;
    const TensorRef& w = graph->initializers[0];
    EXPECT_EQ(w.shape, (std::vector<int64_t>{2, static_cast<int64_t>(columns)}));
    if (columns == 8192) {
      EXPECT_EQ(w.inline_data, bytes);
      continue;
    }
    EXPECT_EQ(w.file, "m.onnx");
    EXPECT_EQ(w.inline_data, "");
    const auto file = read_file(path("m.onnx"));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->substr(w.offset, w.length), bytes);
  }
}

TEST_F(ReadTest, LargeTensorsAreCheckedAsOthersAre) {
  const std::string bytes(1 << 17, 'w');
  auto with = [&](const std::function<void(TensorProto&)>& change) {
    return read_changed([&](ModelProto& m) {
      auto* w = m.mutable_graph()->mutable_initializer(0);
      w->set_raw_data(bytes);
      change(*w);
    });
  };
  expect_error(with([](TensorProto&) {}), Code::bad_input,
               {"initialiser 'w'", "has 131072 bytes of data, but its type and shape need 8"});
  expect_error(with([](TensorProto& w) { w.add_float_data(1); }), Code::bad_input, {"data in two fields"});
  expect_error(with([](TensorProto& w) { w.set_data_location(TensorProto::EXTERNAL); }), Code::bad_input,
               {"both external and inline data"});
  expect_error(with([](TensorProto& w) { w.mutable_segment(); }), Code::not_covered, {"segments"});
  // A second message of the graph goes on with the first: two initialisers of one name.
  const std::string file = small().SerializeAsString();
  ModelProto m = small();
  m.mutable_graph()->mutable_initializer(0)->set_raw_data(bytes);
  ModelProto end;
  *end.mutable_graph()->add_initializer() = m.graph().initializer(0);
  put("m.onnx", file + end.SerializeAsString());
  expect_error(read(path("m.onnx")), Code::bad_input, {"'w'"});
}

TEST_F(ReadTest, DamagedFilesAreErrorsNotCrashes) {
  const std::string whole = small().SerializeAsString();
  for (size_t n = 0; n < whole.size(); ++n) {
    put("m.onnx", whole.substr(0, n));
    auto g = read(path("m.onnx"));
    EXPECT_TRUE(g || g.error().message.find('\n') == std::string::npos);
  }
  // Every byte with every bit flipped: lengths of 2 GiB, types, tags. Whatever is still a model is
  // one.
  for (size_t n = 0; n < whole.size(); ++n)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[n] = static_cast<char>(damaged[n] ^ 1 << bit);
      put("m.onnx", damaged);
      (void)!read(path("m.onnx"));
    }
  // The same around a tensor that stays in the file.
  ModelProto with_large = small();
  with_large.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(70000, 'w'));
  with_large.mutable_graph()->mutable_initializer(0)->add_dims(8750);
  const std::string large = with_large.SerializeAsString();
  ASSERT_TRUE((put("m.onnx", large), read(path("m.onnx"))));
  for (size_t n = 0; n < large.size(); n += n < large.size() - 300 && n > 300 ? 997 : 1) {
    put("m.onnx", large.substr(0, n));
    auto g = read(path("m.onnx"));
    EXPECT_TRUE(g || g.error().message.find('\n') == std::string::npos);
    std::string damaged = large;
    damaged[n] = static_cast<char>(damaged[n] ^ 1 << n % 8);
    put("m.onnx", damaged);
    (void)!read(path("m.onnx"));
  }
  put("m.onnx", std::string("\x3a\xff\xff\xff\xff\x07", 6));  // a graph of 2 GiB
  expect_error(read(path("m.onnx")), Code::bad_input, {"not a well-formed ONNX file"});
  put("m.onnx", "");
  expect_error(read(path("m.onnx")), Code::bad_input, {"an empty file"});
  // Graphs in attributes of graphs, 1000 deep: a stack must not follow them.
  std::string deep;
  auto wrap = [](int field, const std::string& body) {
    std::string out(1, static_cast<char>(field << 3 | 2));
    for (size_t n = body.size();; n >>= 7) {
      out += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
      if (n <= 0x7f) break;
    }
    return out + body;
  };
  for (int i = 0; i < 1000; ++i) deep = wrap(1, wrap(5, wrap(6, deep)));  // node, attribute, g
  put("m.onnx", wrap(7, deep));
  expect_error(read(path("m.onnx")), Code::bad_input, {"not a well-formed ONNX file"});
  expect_error(read(path("none.onnx")), Code::bad_input, {"none.onnx", "No such file"});
  expect_error(read(folder_), Code::bad_input, {"Is a directory"});
}

TEST_F(ReadTest, ALongChainInReverseOrderIsSorted) {
  ModelProto m = small();
  auto* g = m.mutable_graph();
  g->clear_node();
  constexpr int n = 20000;
  for (int i = n; i-- > 0;) {
    auto* node = g->add_node();
    node->set_op_type("Relu");
    node->add_input(i == 0 ? "x" : "v" + std::to_string(i - 1));
    node->add_output(i == n - 1 ? "y" : "v" + std::to_string(i));
  }
  put("m.onnx", m.SerializeAsString());
  auto graph = read(path("m.onnx"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->nodes.front().inputs[0], "x");
  EXPECT_EQ(graph->nodes.back().outputs[0], "y");
}

}  // namespace
}  // namespace invar::onnx
