// Structure-aware mutations of ONNX models. libFuzzer's byte mutations rarely pass the first check
// of the reader.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "onnx.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TensorShapeProto;

int below(Random& r, int n) {
  return n <= 0 ? 0 : static_cast<int>(r() % static_cast<unsigned>(n));
}
template <class List>
auto* any(Random& r, List* list) {
  return list->empty() ? nullptr : list->Mutable(below(r, list->size()));
}

int64_t number(Random& r) {
  static const int64_t edges[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  4,
                                  5,
                                  6,
                                  7,
                                  8,
                                  -2,
                                  16,
                                  255,
                                  256,
                                  257,
                                  65536,
                                  100,
                                  INT8_MIN,
                                  INT32_MAX,
                                  INT32_MIN,
                                  int64_t{1} << 31,
                                  int64_t{1} << 33,
                                  int64_t{1} << 62,
                                  INT64_MAX,
                                  INT64_MIN};
  return edges[below(r, sizeof edges / sizeof *edges)];
}
float real(Random& r) {
  static const float edges[] = {
      0, 1, -1, 0.5f, 2, 1e-5f, 3e38f, -3e38f, 1e-45f, __builtin_nanf(""), __builtin_inff()};
  return edges[below(r, sizeof edges / sizeof *edges)];
}

// A random operator of the models so far.
std::string random_op(Random& r, const std::string& seen) {
  static std::vector<std::string> ops;
  if (!seen.empty() && ops.size() < 4096 && below(r, 4) == 0) ops.push_back(seen);
  return ops.empty() ? seen : ops[static_cast<size_t>(below(r, static_cast<int>(ops.size())))];
}

// A random graph of the model: the main one or a nested one.
GraphProto* random_graph(Random& r, ModelProto& m) {
  GraphProto* g = m.mutable_graph();
  for (int deep = 0; deep < 8; ++deep) {
    std::vector<GraphProto*> inner;
    for (NodeProto& n : *g->mutable_node())
      for (AttributeProto& a : *n.mutable_attribute())
        if (a.has_g()) inner.push_back(a.mutable_g());
    if (inner.empty() || below(r, 2)) break;
    g = inner[static_cast<size_t>(below(r, static_cast<int>(inner.size())))];
  }
  return g;
}

std::string random_value(Random& r, const GraphProto& g) {
  std::vector<std::string> names{""};
  for (const NodeProto& n : g.node()) names.insert(names.end(), n.output().begin(), n.output().end());
  for (const auto& v : g.input()) names.push_back(v.name());
  for (const auto& t : g.initializer()) names.push_back(t.name());
  return names[static_cast<size_t>(below(r, static_cast<int>(names.size())))];
}

void mutate(Random& r, TensorProto& t) {
  switch (below(r, 8)) {
    case 0: t.add_dims(number(r)); break;
    case 1:
      if (t.dims_size()) t.mutable_dims()->RemoveLast();
      break;
    case 2:
      if (t.dims_size()) t.set_dims(below(r, t.dims_size()), number(r));
      break;
    case 3: t.set_data_type(below(r, 24)); break;
    case 4: t.mutable_raw_data()->resize(static_cast<size_t>(below(r, 64))); break;
    case 5:
      if (std::string& raw = *t.mutable_raw_data(); !raw.empty())
        raw[static_cast<size_t>(below(r, static_cast<int>(raw.size())))] = static_cast<char>(r());
      break;
    case 6: t.add_int64_data(number(r)); break;
    default: {
      static const char* const files[] = {"weights.bin", "../weights.bin", "/etc/passwd", "link", "",
                                          ".",           "weights.bin/x"};
      t.set_data_location(TensorProto::EXTERNAL);
      t.clear_raw_data(), t.clear_external_data();
      auto add = [&](const char* key, const std::string& value) {
        auto* e = t.add_external_data();
        e->set_key(key), e->set_value(value);
      };
      add("location", files[below(r, 7)]);
      if (below(r, 2)) add("offset", std::to_string(number(r)));
      if (below(r, 2)) add("length", std::to_string(number(r)));
    }
  }
}

void mutate(Random& r, AttributeProto& a) {
  switch (below(r, 9)) {
    case 0: a.set_i(number(r)); break;
    case 1: a.set_f(real(r)); break;
    case 2: a.add_ints(number(r)); break;
    case 3:
      if (a.ints_size()) a.set_ints(below(r, a.ints_size()), number(r));
      break;
    case 4:
      if (a.ints_size()) a.mutable_ints()->RemoveLast();
      break;
    case 5: a.set_type(static_cast<AttributeProto::AttributeType>(below(r, 15))); break;
    case 6: a.mutable_s()->push_back(static_cast<char>(r())); break;
    case 7:
      if (a.floats_size()) a.set_floats(below(r, a.floats_size()), real(r));
      break;
    default:
      if (a.has_t()) mutate(r, *a.mutable_t());
  }
}

void mutate(Random& r, NodeProto& n, const GraphProto& g) {
  switch (below(r, 9)) {
    case 0:
      if (n.input_size()) n.set_input(below(r, n.input_size()), random_value(r, g));
      break;
    case 1: n.add_input(random_value(r, g)); break;
    case 2:
      if (n.input_size()) n.mutable_input()->RemoveLast();
      break;
    case 3: n.set_op_type(random_op(r, n.op_type())); break;
    case 4: n.set_domain(below(r, 2) ? "" : "com.microsoft"); break;
    case 5:
      if (n.attribute_size()) n.mutable_attribute()->RemoveLast();
      break;
    case 6:
      if (n.output_size()) n.set_output(below(r, n.output_size()), random_value(r, g));
      break;
    case 7: n.add_output("more" + std::to_string(below(r, 9))); break;
    default:
      if (auto* a = any(r, n.mutable_attribute())) mutate(r, *a);
  }
}

void mutate(Random& r, ::onnx::ValueInfoProto& v) {
  auto* t = v.mutable_type()->mutable_tensor_type();
  TensorShapeProto* shape = t->mutable_shape();
  switch (below(r, 6)) {
    case 0: t->set_elem_type(below(r, 24)); break;
    case 1: shape->add_dim()->set_dim_value(number(r)); break;
    case 2:
      if (shape->dim_size()) shape->mutable_dim()->RemoveLast();
      break;
    case 3:
      if (auto* d = any(r, shape->mutable_dim())) d->set_dim_value(number(r));
      break;
    case 4:
      if (auto* d = any(r, shape->mutable_dim())) d->set_dim_param(below(r, 2) ? "n" : "m");
      break;
    default: t->clear_shape();
  }
}

void mutate(Random& r, ModelProto& m) {
  GraphProto& g = *random_graph(r, m);
  switch (below(r, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (auto* n = any(r, g.mutable_node())) mutate(r, *n, g);
      break;
    case 4:
    case 5:
      if (auto* t = any(r, g.mutable_initializer())) mutate(r, *t);
      break;
    case 6:
      if (auto* v = any(r, g.mutable_input())) mutate(r, *v);
      break;
    case 7:
      if (auto* v = any(r, g.mutable_output())) mutate(r, *v);
      break;
    case 8:
      if (auto* n = any(r, g.mutable_node())) {
        NodeProto copy = *n;
        for (std::string& name : *copy.mutable_output()) name += "_";
        g.add_output()->set_name(copy.output_size() ? copy.output(0) : "");
        *g.add_node() = std::move(copy);
      }
      break;
    case 9:
      if (g.node_size()) g.mutable_node()->DeleteSubrange(below(r, g.node_size()), 1);
      break;
    case 10:
      if (auto* set = any(r, m.mutable_opset_import())) set->set_version(below(r, 30));
      break;
    default:
      if (auto* f = any(r, m.mutable_functions())) {
        if (auto* n = any(r, f->mutable_node())) {
          GraphProto as_graph;
          *as_graph.mutable_node() = f->node();
          if (below(r, 3))
            mutate(r, *n, as_graph);
          else
            n->set_op_type(f->name()), n->set_domain(f->domain());  // a recursive call
        }
      } else if (g.input_size()) {  // an input becomes a constant, as weights are
        auto* t = g.add_initializer();
        t->set_name(g.input(below(r, g.input_size())).name()), t->set_data_type(1 + below(r, 16));
      }
  }
}

size_t serialize(const ModelProto& m, uint8_t* data, size_t max_size) {
  std::string bytes;
  if (!m.SerializeToString(&bytes) || bytes.size() > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random r(seed);
  ModelProto m;
  if (below(r, 10) == 0 || !m.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  for (int times = 1 + below(r, 3); times > 0; --times) mutate(r, m);
  const size_t n = serialize(m, data, max_size);
  return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

// Adds the nodes of the second model to the first.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_size, unsigned seed) {
  Random r(seed);
  ModelProto a, b;
  if (!a.ParseFromArray(data1, static_cast<int>(size1)) || !b.ParseFromArray(data2, static_cast<int>(size2)))
    return 0;
  GraphProto& g = *random_graph(r, a);
  for (const NodeProto& other : b.graph().node()) {
    NodeProto n = other;
    for (std::string& name : *n.mutable_input())
      if (below(r, 3)) name = random_value(r, g);
    for (std::string& name : *n.mutable_output()) name += "'";
    if (n.output_size()) g.add_output()->set_name(n.output(0));
    *g.add_node() = std::move(n);
  }
  for (const auto& f : b.functions()) *a.add_functions() = f;
  return serialize(a, out, max_size);
}
