// invar._native: the compiler and the runtime for the Python package beside it. Everything here
// raises invar.Error.
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>

#include "arrays.h"
#include "base/hash/digest_cache.h"
#include "base/hash/sha256.h"
#include "base/profile.h"
#include "base/text/display.h"
#include "base/thread_pool.h"
#include "compiler/compiler.h"
#include "generate/onnx/compile_onnx.h"
#include "generation.h"
#include "onnx/onnx.h"
#include "onnx/tensor.h"
#include "operation.h"
#include "plan/plan.h"
#include "plan/program_text.h"

namespace invar::python {
namespace {

// A loaded plan. One call at a time.
class Program {
 public:
  Program(const std::string& plan, const std::string& folder, const std::string& device,
          const std::string& isa, int threads, const DigestCache* hashed) {
    nb::gil_scoped_release free;
    run::Options options;
    options.device = device, options.isa = isa, options.threads = threads, options.hashed = hashed;
    function_ = std::make_unique<run::Function>(
        or_raise(run::Function::open(or_raise(plan::load(plan)), folder, options)));
  }
  // Returns the outputs in order. With `place`, a function of name, element type and shape that
  // returns an array, the outputs are written to its arrays and none are returned.
  nb::list run(const nb::dict& given, const nb::object& place) {
    run::Function::NamedViews inputs;
    std::deque<Given> all;
    for (auto [key, value] : given) {
      const auto name = nb::cast<std::string>(key);
      ReadOnly array;
      if (!nb::try_cast(value, array, false))
        throw Raised{bad_input("input '" + name + "': no array (DLPack or the buffer protocol)")};
      const Given& one = all.emplace_back(std::move(array), "input '" + name + "'");
      inputs.emplace_back(name, one.view());
    }
    run::Function::NamedTensors outputs;
    std::vector<Array> places;
    const run::Function::OutputAllocator to = [&](const std::string& name, DType dtype,
                                                  std::span<const int64_t> shape) {
      nb::gil_scoped_acquire held;
      const nb::tuple sizes(nb::cast(std::vector<int64_t>(shape.begin(), shape.end())));
      return Result<void*>(
          places.emplace_back(nb::cast<Array>(place(name, std::string(name_of(dtype)), sizes))).data());
    };
    {
      nb::gil_scoped_release free;
      const std::lock_guard one(mutex_);
      if (place.is_none())
        outputs = or_raise(function_->run(inputs));
      else
        or_raise(function_->run(inputs, to));
    }
    nb::list list;
    for (auto& [name, tensor] : outputs) list.append(nb::make_tuple(name, array_of(std::move(tensor))));
    return list;
  }
  std::string isa() const { return std::string(function_->isa()); }
  int device() const { return function_->device(); }
  uintptr_t stream() const { return reinterpret_cast<uintptr_t>(function_->stream()); }
  size_t peak_bytes() const { return function_->peak_bytes(); }
  std::vector<std::string> kernels() const { return function_->kernels(); }
  std::vector<std::string> libraries() const { return function_->libraries(); }

 private:
  std::unique_ptr<run::Function> function_;
  std::mutex mutex_;
};

using NamedArrays = std::vector<std::pair<std::string, ReadOnly>>;

// The graph with the shapes of a call's inputs, and with the values of few integers and booleans
// (onnx.40).
onnx::Graph graph_of_call(onnx::Graph graph, const NamedArrays& call, bool with_values) {
  std::vector<onnx::CallInput> shapes;
  std::deque<Given> all;
  for (const auto& [name, array] : call) {
    const run::TensorView v = all.emplace_back(ReadOnly(array), "input '" + name + "'").view();
    shapes.push_back({name, v.dtype, {v.shape.begin(), v.shape.end()}});
  }
  or_raise(onnx::fix_shapes(graph, shapes));
  for (size_t i = 0; with_values && i < call.size(); ++i) {
    const run::TensorView v = all[i].view();
    if (generate::may_be_in_plan(v.dtype, v.bytes.size()))
      or_raise(onnx::bind_input(graph, call[i].first, v.dtype, shapes[i].shape, v.bytes.data()));
  }
  return graph;
}

// The inputs and outputs as the file says them: (name, element type, dimensions).
nb::tuple describe_model(const std::string& path) {
  const onnx::Graph graph = or_raise(onnx::read(path));
  const auto ports = [](const std::vector<onnx::ValueInfo>& all) {
    nb::list list;
    for (const onnx::ValueInfo& v : all) {
      nb::list shape;
      for (const onnx::Dimension& d : v.shape)
        shape.append(d.value >= 0 ? nb::cast(d.value) : nb::cast(d.name.empty() ? "?" : d.name));
      const auto dtype = onnx::dtype_of(v.data_type);
      list.append(nb::make_tuple(v.name, dtype ? std::string(name_of(*dtype)) : "?", nb::tuple(shape)));
    }
    return list;
  };
  return nb::make_tuple(ports(graph.inputs), ports(graph.outputs));
}

// Returns the digests that were computed. call: inputs for whose shapes alone the plan is, and with
// call_values for those of their values that may be in it; empty: for all. torch_module:
// "reproducible" or "plain" writes module.py beside the plan; "": none.
DigestCache compile(const std::string& model, const std::string& folder, const std::string& plan,
                    const std::vector<std::pair<std::string, ReadOnly>>& bound,
                    const std::vector<std::pair<std::string, int64_t>>& dims,
                    const std::string& operation_set, const std::string& numerics, const std::string& choices,
                    int opt, const std::string& stages, const std::string& torch_module,
                    const NamedArrays& call, bool call_values) {
  const auto set = operation_set_from(operation_set);
  if (!set)
    throw Raised{bad_input("operation_set: '" + operation_set + "' is not known; use one of " +
                           std::string(kOperationSetNames))};
  const auto profile = profile_from(numerics);
  if (!profile)
    throw Raised{
        bad_input("numerics: '" + numerics + "' is not known; use one of " + std::string(kProfileNames))};
  onnx::Graph graph = or_raise(onnx::read(model));
  or_raise(onnx::fix_dims(graph, dims));
  std::vector<std::string> names;
  for (const NamedArrays* given : {&bound, &call})
    for (const auto& input : *given) names.push_back(input.first);
  or_raise(onnx::fix_lists(graph, names));
  for (const auto& [name, array] : bound) {
    const ops::View v = view_of(array, "input '" + name + "'");
    or_raise(onnx::bind_input(graph, name, v.dtype, {v.dim, v.dim + v.rank}, v.data));
  }
  std::vector<std::string> remarks;
  compiler::Options options;
  options.remark = [&remarks](const std::string& text) { remarks.push_back(text); };
  options.folder = folder, options.operation_set = *set, options.choices = choices;
  options.exact16 = *profile == Profile::exact16;
  options.stateless = true;  // programs and modules are functions of tensors
  options.opt = opt, options.artifacts = stages;
  if (!torch_module.empty())
    options.torch_module =
        torch_module == "plain" ? compiler::TorchModule::plain : compiler::TorchModule::reproducible;
  DigestCache hashed;
  options.hashed = &hashed;
  std::optional<onnx::Graph> of_call;
  if (!call.empty()) of_call = graph_of_call(graph, call, call_values), options.program_graph = &graph;
  {
    nb::gil_scoped_release free;
    or_raise(compiler::compile_to(of_call ? *of_call : graph, options, plan));
  }
  for (const std::string& text : remarks)
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw nb::python_error();
  return hashed;
}

// The interface of a plan: inputs and outputs as (name, element type, dimensions), the files of its
// weights, digest, operation set and choices.
nb::dict describe(const std::string& path) {
  const plan::Plan p = or_raise(plan::load(path));
  auto ports = [&p](const std::vector<plan::Port>& all) {
    nb::list list;
    for (const plan::Port& port : all) {
      const plan::Value& value = p.values[port.value];
      nb::list shape;
      for (const plan::DimRef& dim : value.shape)
        shape.append(dim.symbol < 0 ? nb::cast(dim.value) : nb::cast(p.symbols[dim.symbol].text()));
      list.append(nb::make_tuple(port.name, std::string(name_of(value.dtype)), nb::tuple(shape)));
    }
    return list;
  };
  std::set<std::string> files;
  for (const plan::Weight& w : p.weights) files.insert(w.file);
  nb::dict d;
  d["inputs"] = ports(p.inputs), d["outputs"] = ports(p.outputs),
  d["files"] = std::vector<std::string>(files.begin(), files.end());
  d["choices"] = p.choices, d["digest"] = to_hex(plan::digest(p));
  d["operation_set"] = std::string(name_of(p.operation_set));
  d["numerics"] = std::string(name_of(plan::profile_of(p.choices)));
  return d;
}

// receipt.6, of digests as bytes.
nb::bytes root_of(const std::vector<nb::bytes>& given) {
  std::vector<Digest> leaves(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].size() != leaves[i].size())
      throw Raised{bad_input("merkle_root: a leaf of " + std::to_string(given[i].size()) + " bytes")};
    std::memcpy(leaves[i].data(), given[i].data(), leaves[i].size());
  }
  const Digest root = merkle_root(leaves);
  return nb::bytes(root.data(), root.size());
}

// invar.Error and one kind of it for each exit code of the command line.
struct Kinds {
  PyObject *error, *bad_input, *not_covered, *failed, *internal;
} kinds;

PyObject* kind(nb::module_& m, const char* name, const char* doc, nb::handle base, nb::handle also,
               int code) {
  nb::dict members;
  members["exit_code"] = code, members["out_of_bounds"] = false;
  const nb::object bases = also ? nb::object(nb::make_tuple(base, also)) : nb::borrow(base);
  PyObject* made =
      PyErr_NewExceptionWithDoc(("invar." + std::string(name)).c_str(), doc, bases.ptr(), members.ptr());
  m.attr(name) = nb::borrow(made);
  return made;
}

PyObject* kind_of(Code code) {
  switch (code) {
    case Code::bad_input: return kinds.bad_input;
    case Code::not_covered: return kinds.not_covered;
    case Code::failed: return kinds.failed;
    default: return kinds.internal;
  }
}

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Raised& r) {
    PyObject* const kind = kind_of(r.error.code);
    const nb::object made = nb::borrow(kind)(printable(r.error));
    if (r.error.kind == ErrorKind::index) made.attr("out_of_bounds") = true;
    PyErr_SetObject(kind, made.ptr());
  }
}

}  // namespace
}  // namespace invar::python

NB_MODULE(_native, m) {
  using namespace invar;
  using namespace invar::python;
  nb::set_leak_warnings(false);  // remembered operations live as long as the process
  kinds.error = kind(m, "Error", "What Invar refuses, in one line; exit_code is that of the command line.",
                     PyExc_Exception, {}, 70);
  kinds.bad_input =
      kind(m, "BadInput", "Something is not what it should be.", kinds.error, PyExc_ValueError, 2);
  kinds.not_covered = kind(m, "NotCovered", "Outside the guarantee: refused by name.", kinds.error,
                           PyExc_NotImplementedError, 3);
  kinds.failed = kind(m, "Failed", "A verification ran and did not hold.", kinds.error, {}, 1);
  kinds.internal = kind(m, "Internal", "A defect of Invar.", kinds.error, PyExc_RuntimeError, 70);
  nb::register_exception_translator(translate, nullptr);

  nb::class_<DigestCache>(m, "DigestCache");
  nb::class_<Program>(m, "Program")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&, int,
                    const DigestCache*>(),
           nb::arg("plan"), nb::arg("folder"), nb::arg("device"), nb::arg("isa"), nb::arg("threads"),
           nb::arg("hashed").none() = nb::none())
      .def("run", &Program::run, nb::arg("inputs"), nb::arg("place").none() = nb::none())
      .def_prop_ro("device", &Program::device)
      .def_prop_ro("stream", &Program::stream)
      .def_prop_ro("isa", &Program::isa)
      .def_prop_ro("peak_bytes", &Program::peak_bytes)
      .def_prop_ro("kernels", &Program::kernels)
      .def_prop_ro("libraries", &Program::libraries);
  m.def("compile", &compile, nb::arg("model"), nb::arg("folder"), nb::arg("plan"), nb::arg("bound"),
        nb::arg("dims"), nb::kw_only(), nb::arg("operation_set"), nb::arg("numerics"), nb::arg("choices"),
        nb::arg("opt"), nb::arg("stages"), nb::arg("torch_module") = "", nb::arg("call") = NamedArrays(),
        nb::arg("call_values") = false);
  m.def("describe_model", &describe_model);
  m.def("describe", &describe);
  m.def("retyped", &retyped);
  m.def("merkle_root", &root_of);
  add_operations(m);
  add_calls(m);
  add_generation(m);
  m.attr("most_opt") = compiler::kMaxOptLevel;
  m.attr("most_threads") = kMaxThreads;
  m.attr("__version__") = INVAR_VERSION;
}
