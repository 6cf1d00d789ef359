// invar_prove: shows that a function of src/num is correctly rounded on all 2^32 inputs, and writes
// or re-checks the digests of its outputs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "chunks.h"
#include "operation.h"
#ifdef INVAR_HAVE_MPFR
#include "oracle.h"
#endif

namespace invar::prove {

#ifdef INVAR_HAVE_MPFR
int pow_campaign(int64_t count, uint64_t seed);
int atan2_campaign(int64_t count, uint64_t seed, const Probe& probe);
#endif

namespace {

constexpr const char* kUsage =
    "usage: invar_prove FUNCTION [options]          every input against MPFR; exit 1 if one is wrong\n"
    "       invar_prove digest FUNCTION [options]   outputs hashed only\n"
    "       invar_prove check FUNCTION --golden FILE [--chunks LIST] [--isa NAME]\n"
    "                                               chunks hashed and compared with FILE, on every "
    "instruction set here\n"
    "       invar_prove digest|check op:NAME[,ATTRIBUTE=BITS] ...   an operation of one f32 operand and "
    "result\n"
    "       invar_prove operations FILE [--mode sample|full|fill]   the digests of FILE "
    "(src/ops/*/tests/exhaustive.txt)\n"
    "       invar_prove pow [--count N] [--seed S]    random pairs and the rotary domain against MPFR\n"
    "       invar_prove atan2 [--count N] [--seed S] [--isa NAME]   random pairs against MPFR\n"
    "       invar_prove functions | isas            what is here to be proved, and on what\n"
    "options: --isa NAME      instruction set (default: the best here)\n"
    "         --from C --to C first and last of the 256 chunks of 2^24 inputs (default 0 255)\n"
    "         --chunks LIST   these instead, in hexadecimal: 00,3f (check: default from FILE); spread: 2^19 "
    "inputs,\n"
    "                         every 8191st\n"
    "         --threads N     default: all\n"
    "         --state FILE    finished chunks are kept there; run again to resume\n"
    "         --golden FILE   write the chunk digests to FILE (all chunks, none wrong)\n";

int usage(const std::string& problem) {
  std::fprintf(stderr, "invar_prove: %s\n%s", problem.c_str(), kUsage);
  return 2;
}

Digest root_of(const std::map<int, ChunkResult>& results) {
  std::vector<Digest> leaves;
  for (auto& [chunk, r] : results) leaves.push_back(r.digest);
  return merkle_root(leaves);
}

std::string name_of(int chunk) {
  char cc[3];
  std::snprintf(cc, sizeof cc, "%02x", chunk & 255);
  return chunk == kSpread ? "spread" : cc;
}

int write_golden(const std::string& path, const std::string& function, const Digest& spread,
                 const std::map<int, ChunkResult>& results) {
  std::ofstream file(path);
  file << "# " << function
       << ": SHA-256 of the outputs (little-endian binary32, NaN as 7fc00000) of the inputs\n"
       << "# CC000000 ... CCffffff, chunk CC by chunk, then the Merkle root of the 256 "
          "(src/base/hash/sha256.h), "
          "then of\n"
       << "# every 8191st input from 00000000 on, 2^19 of them.\n"
       << "# Written by invar_prove " << function << " --golden; docs/evidence. Tests look at the sample.\n"
       << "sample 00,3f,42,7f,b3,c2,spread\n";
  for (auto& [chunk, r] : results) file << name_of(chunk) << ' ' << to_hex(r.digest) << '\n';
  file << "root " << to_hex(root_of(results)) << "\nspread " << to_hex(spread) << '\n';
  if (!file.flush()) return usage("cannot write " + path);
  return 0;
}

std::vector<int> parse_chunks(const std::string& list) {
  std::vector<int> v;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    v.push_back(item == "spread" ? kSpread : std::strtol(item.c_str(), nullptr, 16) & 255);
  return v;
}

int check(const Function1& map, const Probe& probe, const std::string& function, const std::string& list,
          int threads, const std::string& golden) {
  std::map<std::string, std::string> expected;
  std::ifstream file(golden);
  for (std::string line, key, value; std::getline(file, line);) {
    std::istringstream in(line);
    if (line[0] != '#' && in >> key >> value) expected[key] = value;
  }
  if (expected.size() != kChunks + 3) return usage("not a file of 256 digests: " + golden);
  std::vector<int> chunks = parse_chunks(list.empty() ? expected["sample"] : list);
  int wrong = 0;
  for (auto& [chunk, r] : run_chunks(map, function, probe.isa, chunks, false, threads, "")) {
    const std::string name = name_of(chunk);
    if (expected[name] == to_hex(r.digest)) continue;
    ++wrong;
    std::printf("%s %s chunk %s: digest %s, golden %s\n", function.c_str(), probe.isa, name.c_str(),
                to_hex(r.digest).c_str(), expected[name].c_str());
  }
  std::printf("%s %s: %zu chunks, %d differ\n", function.c_str(), probe.isa, chunks.size(), wrong);
  return wrong ? 1 : 0;
}

// The command line: words, and --NAME VALUE.
struct CommandLine {
  std::vector<std::string> words;
  std::map<std::string, std::string> option;

  long number(const std::string& name, long fallback) const {
    const auto found = option.find(name);
    return found == option.end() ? fallback : std::strtol(found->second.c_str(), nullptr, 0);
  }
  std::string text(const std::string& name, const std::string& fallback = "") const {
    const auto found = option.find(name);
    return found == option.end() ? fallback : found->second;
  }
  int threads() const {
    return static_cast<int>(number("threads", std::max(1u, std::thread::hardware_concurrency())));
  }
  bool is_check() const { return words[0] == "check"; }
  bool digest_only() const { return words[0] == "digest" || is_check(); }
  // The instruction sets that --isa chooses, else the best one here, or all; null where this
  // machine lacks it.
  std::vector<const Probe*> isas(bool all) const {
    if (option.count("isa")) return {find_probe(text("isa"))};
    if (!all) return {probes()[0]};
    return {probes().begin(), probes().end()};
  }
  int no_such_isa() const { return usage("this machine cannot run instruction set " + text("isa")); }
};

// The operations of a file of digests, on every instruction set.
int prove_operations(const CommandLine& line) {
  const std::string mode = line.text("mode", "sample");
  if (mode != "sample" && mode != "full" && mode != "fill") return usage("no such mode: " + mode);
  std::vector<const Probe*> isas = line.isas(true);
  if (mode == "fill") isas.resize(1);
  if (!isas[0]) return line.no_such_isa();
  return operations(line.words[1], mode, isas, line.threads());
}

#ifdef INVAR_HAVE_MPFR
// Random pairs of a function of two operands, against MPFR.
int run_campaign(const CommandLine& line) {
  const int64_t count = line.number("count", 1000000);
  const auto seed = static_cast<uint64_t>(line.number("seed", 1));
  if (line.words[0] == "pow") return pow_campaign(count, seed);
  const Probe* probe = line.isas(false)[0];
  return probe ? atan2_campaign(count, seed, *probe) : line.no_such_isa();
}
#endif

// Computes the chunks on one instruction set, and compares them with MPFR unless only digests are
// wanted.
int prove_chunks(const CommandLine& line, const std::string& function, const Function1& map,
                 const Probe& probe, const std::vector<int>& chunks) {
  auto results =
      run_chunks(map, function, probe.isa, chunks, !line.digest_only(), line.threads(), line.text("state"));
  int64_t wrong = 0, judged = 0;
  for (auto& [chunk, r] : results) wrong += r.wrong, judged += r.judged;
  std::printf("%s %s: %zu inputs, ", function.c_str(), probe.isa, results.size() << 24);
  if (!line.digest_only())
    std::printf("%lld wrong (%lld decided by MPFR), ", (long long)wrong, (long long)judged);
  std::printf("digest %s\n", to_hex(root_of(results)).c_str());
  if (wrong) return 1;
  if (!line.option.count("golden") || results.size() != kChunks) return 0;
  return write_golden(line.text("golden"), function, run_chunk(map, function, kSpread, false).digest,
                      results);
}

// One function, or operation of one operand, over the chosen chunks on the chosen instruction sets.
int prove_function(const CommandLine& line) {
  const bool is_check = line.is_check(), digest_only = line.digest_only();
  if (line.words.size() != (digest_only ? 2u : 1u)) return usage("one function is expected");
  const std::string function = line.words.back();
  const bool operation = digest_only && function.rfind("op:", 0) == 0;
  if (!operation && !find_map(*probes()[0], function)) return usage("unknown function " + function);
#ifdef INVAR_HAVE_MPFR
  if (!digest_only && !Oracle::knows(function)) return usage("no oracle for " + function);
#endif
  const long from = line.number("from", 0);
  std::vector<int> chunks(static_cast<size_t>(std::clamp(line.number("to", 255) - from + 1, 0L, 256L)));
  std::iota(chunks.begin(), chunks.end(), static_cast<int>(from));
  if (line.option.count("chunks")) chunks = parse_chunks(line.text("chunks"));
  if (chunks.empty() || chunks.front() < 0 || chunks.back() >= (is_check ? kSpread + 1 : kChunks))
    return usage("chunks are 0 to 255");

  const std::vector<const Probe*> isas = line.isas(is_check);
  if (!isas[0]) return line.no_such_isa();
  int rc = 0;
  for (const Probe* probe : isas) {
    Function1 map = find_map(*probe, function);
    if (operation) {
      std::string problem;
      auto found = find_operation(function, probe->isa, problem);
      if (!found) return usage(problem);
      map = *found;
    }
    const int one =
        is_check ? check(map, *probe, function, line.text("chunks"), line.threads(), line.text("golden"))
                 : prove_chunks(line, function, map, *probe, chunks);
    rc = std::max(rc, one);
  }
  return rc;
}

int main(int argc, char** argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--help" || a == "-h") return std::fputs(kUsage, stdout), 0;
    if (a.rfind("--", 0) != 0)
      line.words.push_back(a);
    else if (i + 1 < argc)
      line.option[a.substr(2)] = argv[++i];
    else
      return usage("no value for " + a);
  }
  if (line.words.empty()) return usage("what is to be proved?");
  const std::string& what = line.words[0];
  if (what == "isas") {
    for (const Probe* p : probes()) std::printf("%s\n", p->isa);
    return 0;
  }
  if (what == "functions") {
    for (const Function& f : probes()[0]->functions) std::printf("%s\n", f.name.data());
    return 0;
  }
  if (what == "operations" && line.words.size() == 2) return prove_operations(line);
#ifdef INVAR_HAVE_MPFR
  if (what == "pow" || what == "atan2") return run_campaign(line);
#else
  if (!line.digest_only()) return usage("built without MPFR: digest and check only");
#endif
  return prove_function(line);
}

}  // namespace
}  // namespace invar::prove

int main(int argc, char** argv) {
  return invar::prove::main(argc, argv);
}
