// invar_conformance: every kernel row of every room against the reference, the chosen vectors and
// the committed digests. README.md says how to use it and how to write a room's cases.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "base/file/file.h"
#include "base/opset.h"
#include "conformance/rooms.h"
#include "kernels/forced_route.h"
#include "num/env.h"

namespace invar::conformance {
namespace {

struct Options {
  std::string rooms = INVAR_SOURCE_DIR "/src/ops", op;
  std::vector<std::string> isas;  // empty: all
  int stride = 1;                 // every n-th case of cases.txt
  size_t part = 0, parts = 1;     // of the cases, vectors and digests: those whose number leaves `part`
  bool write_golden = false, runs = false;
  bool has(size_t i) const { return i % parts == part; }
  bool wants(std::string_view isa) const {
    return isas.empty() || std::ranges::find(isas, isa) != isas.end();
  }
};

int failures = 0;
void fail(const std::string& line) {
  if (++failures <= 20) std::printf("FAIL %s\n", line.c_str());
}

// The modes in which a case runs: whole, split, reversed, unpacked, in steps. `all`: every mode;
// else one.
std::vector<RunMode> manners(ops::KernelRef k, const Case& c, bool all) {
  std::vector<RunMode> list{{}};
  if (!all) return list;
  using Batching = RunMode::Batching;
  std::vector<Batching> companies{Batching::even};
  if (!c.chunks.empty() && c.out[0].shape[0] > 1) companies.push_back(Batching::ragged);
  const bool packs = k.cpu ? k.cpu->pack_bytes : k.gpu->pack_bytes;
  constexpr uint64_t kEverySecond = 0x5555555555555555;
  const auto constants = std::ranges::count_if(c.in, [](const Tensor& t) { return t.constant; });
  if (k.gpu) {  // the whole call at once; `reversed`: queued with a larger bound on `past`
    if (constants && packs) list.push_back({.packed = false});
    if (constants > 1 && packs)
      list.push_back({.plain = kEverySecond}), list.push_back({.plain = ~kEverySecond});
    for (int64_t chunk : c.chunks)
      for (Batching batching : companies)
        for (const bool pages : {false, true})
          list.push_back({.chunk = chunk, .batching = batching, .pages = pages}),
              list.push_back({.reversed = true, .chunk = chunk, .batching = batching, .pages = pages});
    return list;
  }
  list.push_back({.parts = 2});
  list.push_back({.parts = 3, .reversed = true});
  list.push_back({.parts = 8, .fused = k.cpu->epilogue || k.cpu->region});
  list.push_back({.parts = 0, .reversed = true});
  if (constants > 1 && packs) list.push_back({.parts = 2, .plain = kEverySecond, .fused = k.cpu->epilogue});
  if (constants > 1 && packs) list.push_back({.parts = 3, .plain = ~kEverySecond});
  if (constants && packs) list.push_back({.parts = 3, .packed = false, .fused = k.cpu->epilogue});
  for (int64_t chunk : c.chunks)
    for (Batching batching : companies) {
      list.push_back({.chunk = chunk, .batching = batching});
      list.push_back({.parts = 3, .reversed = true, .chunk = chunk, .batching = batching, .pages = true});
    }
  return list;
}

struct Count {
  int64_t cases = 0, runs = 0;
};

// Runs the rows on one case and compares with `expected` (null: with the first run of the first
// row).
void check(const std::vector<ops::KernelRef>& rows, const Case& c, const std::vector<Bytes>* expected,
           std::map<std::string_view, Count>& counts) {
  auto inputs = inputs_of(c);
  if (!inputs) return fail(c.text + ": " + inputs.error().message);
  if (std::string wrong = refusal(rows[0].op(), c); !wrong.empty())
    fail(c.text + ": the room's check requires " + wrong);
  std::vector<Bytes> truth;
  for (const ops::KernelRef k : rows) {
    ++counts[k.isa()].cases;
    for (const RunMode& mode : manners(k, c, k.isa() != "reference" || !c.chunks.empty())) {
      ++counts[k.isa()].runs;
      std::string name =
          std::string(k.op()) + " " + std::string(k.isa()) + " (" + mode.text() + ") " + c.text;
      const auto found = execute(k, c, *inputs, mode);
      if (!expected && found) truth = *found, expected = &truth;
      if (std::string wrong = judge(c, found, expected); !wrong.empty()) fail(name + ": " + wrong);
      if (k != rows[0] || mode.chunk || !found) continue;
      if (std::string wrong = check_batch_independence(*k.cpu, c, *inputs, *found); !wrong.empty())
        fail(name + ": " + wrong);
    }
  }
}

// The rows of an operation under test, and their instruction sets that this CPU cannot run.
std::vector<ops::KernelRef> rows_of(std::string_view op, const Options& options,
                                    std::map<std::string, int>& not_runnable) {
  std::vector<ops::KernelRef> rows;
  const ops::CpuKernel* best = nullptr;
  const bool stateful = ops::contract_of(op)->stateful;
  auto check_state = [&](std::string_view isa, bool has_state) {
    if (has_state != stateful)
      fail(std::string(op) + " " + std::string(isa) + ": state against its contract");
  };
  for (const ops::CpuKernel* k : ops::cpu_kernels()) {
    if (k->op != op) continue;
    check_state(k->isa, k->state_bytes);
    const ops::CpuKernel* found = ops::find_cpu_kernel(op, k->isa);
    if (!found) {
      if (options.wants(k->isa)) ++not_runnable[std::string(k->isa)];
      continue;
    }
    if (!best) best = k;
    if (found != k)
      fail(std::string(op) + ": find_cpu_kernel(\"" + std::string(k->isa) + "\") gives the row " +
           std::string(found->isa));
    if (k->isa == "reference")
      rows.insert(rows.begin(), k);  // the reference comes first
    else if (options.wants(k->isa))
      rows.push_back(k);
  }
  if (const ops::GpuKernel* k = ops::find_gpu_kernel(op); k && options.wants(k->isa)) {
    check_state(k->isa, k->state_bytes);
    if (gpu())
      rows.push_back(k);
    else
      ++not_runnable[std::string(k->isa)];
  }
  if (rows.empty() || rows[0].isa() != "reference") fail(std::string(op) + ": no reference row");
  if (best != ops::find_cpu_kernel(op))
    fail(std::string(op) + ": find_cpu_kernel() does not give the first runnable row");
  return rows;
}

// The lines of golden.txt, and of an operation without one those of the first operation of its
// kind.
std::string with_new_operation(const std::string& text, const OpInfo& info) {
  std::string_view like;
  std::string lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at), prefix = prefix_of(line);
    at = end + 1;
    if (prefix.empty()) continue;
    std::string_view op = prefix.substr(0, prefix.size() - 2);
    if (op == info.op) return text;
    const OpInfo* other = op_info(op);
    if (like.empty() && other && other->kind == info.kind) like = op;
    if (op == like) lines += std::string(info.op) + std::string(line.substr(op.size())) + "\n";
  }
  return text + lines;
}

// Whether a line of a room's file is of this operation.
bool is_line_of(const std::string& line, const OpInfo& info) {
  return prefix_of(line).empty() ? info.room == info.op : is_for(line, info.op);
}

// Compares the reference with the outputs of vectors.txt, which an oracle computed from the
// specification. "" if equal.
std::string check_vectors(const OpInfo& info, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error().message;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!is_line_of(line, info)) continue;
    const auto cases = parse(line, path, info.op);
    if (!cases) return cases.error().message;
    for (const Case& c : *cases) {
      const auto inputs = inputs_of(c), expected = outputs_of(c);
      if (!inputs || !expected) return c.text + ": " + (inputs ? expected : inputs).error().message;
      const auto found = execute(ops::find_cpu_kernel(info.op, "reference"), c, *inputs, {});
      if (std::string wrong = judge(c, found, &*expected); !wrong.empty()) return c.text + ": " + wrong;
    }
  }
  return "";
}

int write_golden(const Options& options) {
  for (const OpInfo& info : opset()) {
    if (!options.op.empty() && options.op != info.op) continue;
    const std::string folder = options.rooms + "/" + std::string(info.room) + "/tests/";
    const std::string path = folder + "golden.txt";
    if (const std::string wrong = check_vectors(info, folder + "vectors.txt"); !wrong.empty())
      return std::printf("%s\n", wrong.c_str()), 1;
    auto text = read_file(path);
    if (!text) return std::printf("%s\n", text.error().message.c_str()), 2;
    if (!info.kind.empty()) *text = with_new_operation(*text, info);
    std::string out;
    for (size_t at = 0; at < text->size();) {
      size_t end = std::min(text->find('\n', at), text->size());
      std::string whole = text->substr(at, end - at), line = whole.substr(0, whole.find(" => "));
      at = end + 1;
      if (!is_line_of(line, info)) {
        out += whole + "\n";  // another operation's, or a comment
        continue;
      }
      auto cases = parse(line, path, info.op);
      if (!cases) return std::printf("%s\n", cases.error().message.c_str()), 2;
      if (cases->empty()) {
        out += line + "\n";  // a comment
        continue;
      }
      const Case& c = cases->front();
      auto inputs = inputs_of(c);
      if (!inputs) return std::printf("%s\n", inputs.error().message.c_str()), 2;
      auto found = execute(ops::find_cpu_kernel(info.op, "reference"), c, *inputs, {});
      if (!found) return std::printf("%s: %s\n", c.text.c_str(), found.error().message.c_str()), 1;
      out += line + " => " + digest_of(c, *found) + "\n";
    }
    if (auto done = write_file(path, out); !done) return std::printf("%s\n", done.error().message.c_str()), 2;
    std::printf("wrote %s\n", path.c_str());
  }
  return 0;
}

int run(const Options& options) {
  if (!num::arithmetic_env_ok())
    return std::printf("this thread does not compute IEEE arithmetic as specified\n"), 70;
  if (options.write_golden) return write_golden(options);
  size_t runnable = 0;
  for (const std::string& isa : options.isas) {
    const auto is_of_isa = [&](auto* k) { return k->isa == isa; };
    if (std::ranges::none_of(ops::cpu_kernels(), is_of_isa) &&
        std::ranges::none_of(ops::gpu_kernels(), is_of_isa))
      return std::printf("no such instruction set in this build: %s\n", isa.c_str()), 2;
    if (isa == ops::kCuda && !gpu())
      std::printf("not runnable here: %s\n", gpu().error().message.c_str());
    else if (isa != ops::kCuda && std::ranges::none_of(ops::cpu_kernels(), [&](auto* k) {
               return k->isa == isa && ops::find_cpu_kernel(k->op, isa);
             }))
      std::printf("not runnable here: %s\n", isa.c_str());
    else
      ++runnable;
  }
  if (runnable == 0 && !options.isas.empty()) return 77;  // ctest reports it as skipped
  if (options.runs) return 0;
  std::map<std::string, int> not_runnable;
  std::map<std::string_view, int> rooms_of_isa;
  for (const OpInfo& info : opset()) {
    if (!options.op.empty() && options.op != info.op) continue;
    auto rows = rows_of(info.op, options, not_runnable);
    if (rows.empty()) continue;
    auto room = read_room(info, options.rooms);
    if (!room) {
      fail(room.error().message);
      continue;
    }
    std::map<std::string_view, Count> counts;
    const size_t stride = static_cast<size_t>(options.stride);
    for (size_t i = 0; i * stride < room->cases.size(); ++i)
      if (options.has(i)) check(rows, room->cases[i * stride], nullptr, counts);
    for (size_t i = 0; i < room->golden.size(); ++i)
      if (options.has(i)) check(rows, room->golden[i], nullptr, counts);
    for (size_t i = 0; i < room->vectors.size(); ++i) {
      if (!options.has(i)) continue;
      const Case& c = room->vectors[i];
      auto expected = outputs_of(c);
      if (!expected)
        fail(std::string(info.op) + "/vectors.txt: " + expected.error().message);
      else
        check(rows, c, &*expected, counts);
    }
    std::printf("%-10s", std::string(info.op).c_str());
    for (const ops::KernelRef k : rows) {
      ++rooms_of_isa[k.isa()];
      std::printf("  %s %lld cases, %lld runs", std::string(k.isa()).c_str(),
                  static_cast<long long>(counts[k.isa()].cases),
                  static_cast<long long>(counts[k.isa()].runs));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  for (auto& [isa, count] : not_runnable)
    std::printf("not runnable here: %s (%d rows)\n", isa.c_str(), count);
  std::printf("ran:");
  for (auto& [isa, count] : rooms_of_isa) std::printf(" %s (%d rows)", std::string(isa).c_str(), count);
  std::printf("\n");
  return failures ? std::printf("%d failures\n", failures), 1 : 0;
}

}  // namespace
}  // namespace invar::conformance

int main(int argc, char** argv) {
  invar::conformance::Options o;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    bool more = i + 1 < argc;
    if (a == "--isa" && more)
      o.isas.emplace_back(argv[++i]);
    else if (a == "--op" && more)
      o.op = argv[++i];
    else if (a == "--rooms" && more)
      o.rooms = argv[++i];
    else if (a == "--variant" && more)
      invar::ops::force_variant(std::atoi(argv[++i]));
    else if (a == "--fast")
      o.stride = 17;
    else if (a == "--part" && more && std::sscanf(argv[i + 1], "%zu/%zu", &o.part, &o.parts) == 2 &&
             o.part < o.parts)
      ++i;
    else if (a == "--write-golden")
      o.write_golden = true;
    else if (a == "--runs")
      o.runs = true;
    else {
      std::printf(
          "usage: invar_conformance [--isa ISA ...] [--op OP] [--fast] [--part I/N] [--variant N] "
          "[--rooms FOLDER] [--write-golden] [--runs]\n");
      return 2;
    }
  }
  invar::num::ArithmeticEnv env;
  return invar::conformance::run(o);
}
