// invar_prove: shows that a function of src/num is correctly rounded on all 2^32 inputs, and writes or
// re-checks the digests of its outputs.
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
       << "# CC000000 ... CCffffff, chunk CC by chunk, then the Merkle root of the 256 (src/base/hash/sha256.h), "
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

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::map<std::string, std::string> option;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--help" || a == "-h") return std::fputs(kUsage, stdout), 0;
    if (a.rfind("--", 0) != 0)
      words.push_back(a);
    else if (i + 1 < argc)
      option[a.substr(2)] = argv[++i];
    else
      return usage("no value for " + a);
  }
  if (words.empty()) return usage("what is to be proved?");
  if (words[0] == "isas") {
    for (const Probe* p : probes()) std::printf("%s\n", p->isa);
    return 0;
  }
  if (words[0] == "functions") {
    for (const Function& f : probes()[0]->functions) std::printf("%s\n", f.name.data());
    return 0;
  }
  auto number = [&](const char* name, long fallback) {
    return option.count(name) ? std::strtol(option[name].c_str(), nullptr, 0) : fallback;
  };
  int threads = static_cast<int>(number("threads", std::max(1u, std::thread::hardware_concurrency())));
  bool is_check = words[0] == "check", digest_only = words[0] == "digest" || is_check;
  if (words[0] == "operations" && words.size() == 2) {
    std::string mode = option.count("mode") ? option["mode"] : "sample";
    if (mode != "sample" && mode != "full" && mode != "fill") return usage("no such mode: " + mode);
    std::vector<const Probe*> isas(probes().begin(), probes().end());
    if (option.count("isa")) isas = {find_probe(option["isa"])};
    if (mode == "fill") isas.resize(1);
    if (!isas[0]) return usage("this machine cannot run instruction set " + option["isa"]);
    return operations(words[1], mode, isas, threads);
  }
#ifdef INVAR_HAVE_MPFR
  if (words[0] == "pow")
    return pow_campaign(number("count", 1000000), static_cast<uint64_t>(number("seed", 1)));
  if (words[0] == "atan2") {
    const Probe* probe = option.count("isa") ? find_probe(option["isa"]) : probes()[0];
    if (!probe) return usage("this machine cannot run instruction set " + option["isa"]);
    return atan2_campaign(number("count", 1000000), static_cast<uint64_t>(number("seed", 1)), *probe);
  }
#else
  if (!digest_only) return usage("built without MPFR: digest and check only");
#endif
  if (words.size() != (digest_only ? 2u : 1u)) return usage("one function is expected");
  std::string function = words.back();
  bool operation = digest_only && function.rfind("op:", 0) == 0;
  if (!operation && !find_map(*probes()[0], function)) return usage("unknown function " + function);
#ifdef INVAR_HAVE_MPFR
  if (!digest_only && !Oracle::knows(function)) return usage("no oracle for " + function);
#endif
  std::vector<int> chunks(
      static_cast<size_t>(std::clamp(number("to", 255) - number("from", 0) + 1, 0L, 256L)));
  std::iota(chunks.begin(), chunks.end(), static_cast<int>(number("from", 0)));
  if (option.count("chunks")) chunks = parse_chunks(option["chunks"]);
  if (chunks.empty() || chunks.front() < 0 || chunks.back() >= (is_check ? kSpread + 1 : kChunks))
    return usage("chunks are 0 to 255");

  std::vector<const Probe*> chosen;
  if (option.count("isa"))
    chosen.push_back(find_probe(option["isa"]));
  else if (is_check)
    chosen.assign(probes().begin(), probes().end());
  else
    chosen.push_back(probes()[0]);
  if (!chosen[0]) return usage("this machine cannot run instruction set " + option["isa"]);
  int rc = 0;
  for (const Probe* probe : chosen) {
    Function1 map = find_map(*probe, function);
    if (operation) {
      std::string problem;
      auto found = find_operation(function, probe->isa, problem);
      if (!found) return usage(problem);
      map = *found;
    }
    if (is_check) {
      rc = std::max(rc, check(map, *probe, function, option["chunks"], threads, option["golden"]));
      continue;
    }
    auto results = run_chunks(map, function, probe->isa, chunks, !digest_only, threads, option["state"]);
    int64_t wrong = 0, judged = 0;
    for (auto& [chunk, r] : results) wrong += r.wrong, judged += r.judged;
    std::printf("%s %s: %zu inputs, ", function.c_str(), probe->isa, results.size() << 24);
    if (!digest_only) std::printf("%lld wrong (%lld decided by MPFR), ", (long long)wrong, (long long)judged);
    std::printf("digest %s\n", to_hex(root_of(results)).c_str());
    if (wrong) rc = 1;
    if (!rc && option.count("golden") && results.size() == kChunks)
      rc = write_golden(option["golden"], function, run_chunk(map, function, kSpread, false).digest, results);
  }
  return rc;
}

}  // namespace
}  // namespace invar::prove

int main(int argc, char** argv) {
  return invar::prove::main(argc, argv);
}
