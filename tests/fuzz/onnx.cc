// libFuzzer: a model file -> read -> compile -> the plan read again -> one run by two instruction sets. What it asks of every input:
// no crash, no defect, a message in plain lines, a plan that its own reader takes, and the same bytes with and without rewrites. tools/fuzz.sh runs it.
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

constexpr int64_t kElements = 1 << 15;  // of all values of a program that is also run
constexpr int64_t kSize = 2;            // of a named dimension

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

// The model's folder: beside it what external data may name, and may not.
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

// The elements of a shape, or -1 where they are more than `most`.
int64_t elements(const std::vector<int64_t>& shape, int64_t most) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (d < 0 || (d && n > most / d)) return -1;
    n *= d;
  }
  return n;
}

// An input of every name: dimensions kSize where the plan has a symbol, bytes that are small numbers of every type.
bool inputs_of(const plan::Plan& plan, run::Function::Named& inputs) {
  int64_t left = kElements;
  for (const plan::Weight& w : plan.weights)
    if ((left -= std::max<int64_t>(elements(w.shape, left), 0)) <= 0) return false;
  for (const plan::Value& v : plan.values) {
    std::vector<int64_t> shape;
    for (const plan::Dim& d : v.shape) shape.push_back(d.symbol < 0 ? d.value : kSize * kSize * kSize);
    const int64_t n = elements(shape, left);
    if (n < 0 || (left -= n) <= 0) return false;
  }
  for (const plan::Port& port : plan.inputs) {
    const plan::Value& v = plan.values[static_cast<size_t>(port.value)];
    run::Tensor t{v.dtype, {}, {}};
    for (const plan::Dim& d : v.shape) t.shape.push_back(d.symbol < 0 ? d.value : kSize);
    t.bytes.resize(static_cast<size_t>(elements(t.shape, kElements)) * size_of(v.dtype));
    for (size_t i = 0; i < t.bytes.size(); i += size_of(v.dtype))
      t.bytes[i] = std::byte(i / size_of(v.dtype) % 2);
    inputs.emplace_back(port.name, std::move(t));
  }
  return true;
}

// The bytes of all outputs by one instruction set.
Result<std::string> outcome(const plan::Plan& plan, const run::Function::Named& inputs, const char* isa) {
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
  run::Function::Named inputs;
  if (!plan->states.empty() || !inputs_of(*plan, inputs)) return;
  const auto result = outcome(*plan, inputs, "scalar"), reference = outcome(*plan, inputs, "reference");
  if (!result) expect(result.error());
  if (static_cast<bool>(result) != static_cast<bool>(reference) ||
      (result ? *result != *reference : result.error().message != reference.error().message))
    defect("instruction sets give different answers");
  options.opt = 0;
  const auto plain = compiler::compile_to(*graph, options, folder() + "/plain.invar");
  if (!plain) defect("refused without rewrites alone: " + plain.error().message);
  inputs.clear();
  if (!inputs_of(*plain, inputs)) return;
  const auto as_written = outcome(*plain, inputs, "scalar");
  if (result && as_written && *result != *as_written) defect("rewrites change bits");
}

}  // namespace
}  // namespace invar

// LLVM's headers poison their arenas where they see the sanitizer; the packaged libraries would not unpoison them.
extern "C" const char* __asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  invar::try_model({reinterpret_cast<const char*>(data), size});
  return 0;
}
