// Fuzzes the path from model file to outputs: read, compile, reparse the plan, run with two
// instruction sets. Every input must give no crash, errors in plain single lines, a plan that its
// parser accepts, and the same bytes with and without optimization. Run by tools/fuzz.sh.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "compiler/compiler.h"
#include "onnx/onnx.h"
#include "run/function.h"

namespace invar {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxElements = 1 << 15;  // of all values of a program that is run
constexpr int64_t kSymbolSize = 2;         // of a symbolic dimension

[[noreturn]] void defect(const std::string& what) {
  std::fprintf(stderr, "DEFECT: %s\n", what.c_str());
  std::abort();
}
void expect(const Error& e) {
  if (e.code == Code::internal || e.message.empty()) defect("an error of the compiler's own: " + e.message);
  for (const char c : e.message)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f)
      defect("a control character in a message: " + e.message);
}

// The model's folder, with files that external data may and may not refer to.
struct Folder {
  std::string path = (fs::temp_directory_path() / "invar-fuzz-XXXXXX").string();
  Folder() {
    if (!mkdtemp(path.data()) || !write_file(path + "/weights.bin", std::string(4096, '\1')))
      defect("no space for temporary files");
    fs::create_symlink("/etc/passwd", path + "/link");
  }
  ~Folder() { fs::remove_all(path); }
};
const std::string& folder() {
  static const Folder folder;
  return folder.path;
}

// The number of elements, or -1 if it exceeds `limit`.
int64_t elements(const std::vector<int64_t>& shape, int64_t limit) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (d < 0 || (d && n > limit / d)) return -1;
    n *= d;
  }
  return n;
}

// Makes a tensor of small numbers for every input. False if the program is too large to run.
bool make_inputs(const plan::Plan& plan, run::Function::NamedTensors& inputs) {
  int64_t left = kMaxElements;
  for (const plan::Weight& w : plan.weights)
    if ((left -= std::max<int64_t>(elements(w.shape, left), 0)) <= 0) return false;
  for (const plan::Value& v : plan.values) {
    std::vector<int64_t> shape;
    for (const plan::DimRef& d : v.shape)
      shape.push_back(d.symbol < 0 ? d.value : kSymbolSize * kSymbolSize * kSymbolSize);
    const int64_t n = elements(shape, left);
    if (n < 0 || (left -= n) <= 0) return false;
  }
  for (const plan::Port& port : plan.inputs) {
    const plan::Value& v = plan.values[static_cast<size_t>(port.value)];
    run::Tensor t{v.dtype, {}, {}};
    for (const plan::DimRef& d : v.shape) t.shape.push_back(d.symbol < 0 ? d.value : kSymbolSize);
    t.bytes.resize(static_cast<size_t>(elements(t.shape, kMaxElements)) * size_of(v.dtype));
    for (size_t i = 0; i < t.bytes.size(); i += size_of(v.dtype))
      t.bytes[i] = std::byte(i / size_of(v.dtype) % 2);
    inputs.emplace_back(port.name, std::move(t));
  }
  return true;
}

// The bytes of all outputs with one instruction set.
Result<std::string> outcome(const plan::Plan& plan, const run::Function::NamedTensors& inputs,
                            const char* isa) {
  run::Options options;
  options.isa = isa, options.threads = 1;
  INVAR_TRY(auto function, run::Function::open(plan, folder(), options));
  INVAR_TRY(const auto results, function.run(inputs));
  std::string all;
  for (const auto& [name, t] : results)
    all += name + std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  return all;
}

void try_model(std::string_view bytes) {
  const std::string path = folder() + "/model.onnx";
  if (!write_file(path, bytes)) defect("no space for temporary files");
  const auto graph = onnx::read(path);
  if (!graph) return expect(graph.error());
  compiler::Options options;
  options.folder = folder();
  const auto plan = compiler::compile_to(*graph, options, folder() + "/plan.invar");
  if (!plan) return expect(plan.error());
  const auto read = plan::load(folder() + "/plan.invar");
  if (!read) defect("the plan is not read: " + read.error().message);
  if (plan::print(*read) != plan::print(*plan)) defect("the plan changes when it is read");
  run::Function::NamedTensors inputs;
  if (!plan->states.empty() || !make_inputs(*plan, inputs)) return;
  const auto result = outcome(*plan, inputs, "scalar"), reference = outcome(*plan, inputs, "reference");
  if (!result) expect(result.error());
  if (static_cast<bool>(result) != static_cast<bool>(reference) ||
      (result ? *result != *reference : result.error().message != reference.error().message))
    defect("instruction sets give different answers");
  options.opt = 0, options.torch_module = compiler::TorchModule::reproducible;
  const auto plain = compiler::compile_to(*graph, options, folder() + "/plain.invar");
  if (!plain) defect("refused without rewrites alone: " + plain.error().message);
  inputs.clear();
  if (!make_inputs(*plain, inputs)) return;
  const auto as_written = outcome(*plain, inputs, "scalar");
  if (result && as_written && *result != *as_written) defect("rewrites change bits");
}

}  // namespace
}  // namespace invar

// LLVM's headers poison their arenas under the sanitizer, but the packaged libraries, built without
// it, do not unpoison them.
extern "C" const char* __asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  invar::try_model({reinterpret_cast<const char*>(data), size});
  return 0;
}
