#include "chunks.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/endian.h"
#include "num/env.h"
#ifdef INVAR_HAVE_MPFR
#include "oracle.h"
#endif

namespace invar::prove {

ChunkResult run_chunk(const Function1& map, const std::string& function, int chunk, bool prove) {
  num::ArithmeticEnv env;
  constexpr int kBatch = 1 << 18;  // a GPU's call costs as much as computing thousands
  std::vector<float> x(kBatch), y(kBatch);
  std::vector<uint32_t> stored(kBatch);
  auto canonical = [](float v) { return v != v ? 0x7fc00000u : std::bit_cast<uint32_t>(v); };
  Sha256 hash;
  ChunkResult r;
#ifdef INVAR_HAVE_MPFR
  std::unique_ptr<Oracle> oracle;
  if (prove) oracle = std::make_unique<Oracle>(function);
#else
  (void)function, (void)prove;
#endif
  const bool spread = chunk == kSpread;
  const uint32_t first = spread ? 0 : static_cast<uint32_t>(chunk) << 24, step = spread ? kSpreadStep : 1;
  for (uint32_t begin = 0; begin < (spread ? kSpreadInputs : 1u << 24); begin += kBatch) {
    for (uint32_t i = 0; i < kBatch; ++i) x[i] = std::bit_cast<float>(first + (begin + i) * step);
    map(x.data(), y.data(), kBatch);
    for (int i = 0; i < kBatch; ++i) {
      const uint32_t u = canonical(y[i]);
      copy_little_endian(&stored[i], &u, sizeof u, sizeof u);
    }
#ifdef INVAR_HAVE_MPFR
    for (int i = 0; oracle && i < kBatch; ++i) {
      const uint32_t u = canonical(y[i]), right = oracle->value(x[i]);
      if (u != right && ++r.wrong <= 10)
        std::printf("%s(%08x) = %08x, correctly rounded %08x\n", function.c_str(),
                    std::bit_cast<uint32_t>(x[i]), u, right);
    }
#endif
    hash.update(stored.data(), stored.size() * sizeof(uint32_t));
  }
#ifdef INVAR_HAVE_MPFR
  r.proved = oracle != nullptr;
  if (oracle) r.judged = oracle->judged();
#endif
  r.digest = hash.finish();
  return r;
}

namespace {

std::map<int, ChunkResult> read_state(const std::string& path, const std::string& function,
                                      const std::string& isa) {
  std::map<int, ChunkResult> done;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string f, i, hex;
    int chunk;
    ChunkResult r;
    if (!(in >> f >> i >> chunk >> r.proved >> r.wrong >> r.judged >> hex)) continue;
    auto digest = digest_from_hex(hex);  // a line cut off by an interruption is not complete
    if (f != function || i != isa || chunk < 0 || chunk > kSpread || !digest) continue;
    r.digest = *digest;
    done[chunk] = r;
  }
  return done;
}

}  // namespace

std::map<int, ChunkResult> run_chunks(const Function1& map, const std::string& function,
                                      const std::string& isa, const std::vector<int>& chunks, bool prove,
                                      int threads, const std::string& state) {
  std::map<int, ChunkResult> kept, done;
  if (!state.empty()) kept = read_state(state, function, isa);
  std::vector<int> pending;
  for (int c : chunks) {
    auto it = kept.find(c);
    if (it != kept.end() && it->second.proved >= prove)
      done[c] = it->second;
    else
      pending.push_back(c);
  }
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < pending.size();) {
      ChunkResult r = run_chunk(map, function, pending[i], prove);
      std::lock_guard lock(mutex);
      done[pending[i]] = r;
      if (!state.empty()) {
        std::ofstream file(state, std::ios::app);
        file << function << ' ' << isa << ' ' << pending[i] << ' ' << r.proved << ' ' << r.wrong << ' '
             << r.judged << ' ' << to_hex(r.digest) << std::endl;
      }
      if (isatty(2)) {
        int filled = static_cast<int>(40 * done.size() / chunks.size());
        std::fprintf(stderr, "\r%s %s [%.*s%*s] %zu/%zu", function.c_str(), isa.c_str(), filled,
                     "########################################", 40 - filled, "", done.size(), chunks.size());
        if (done.size() == chunks.size()) std::fputc('\n', stderr);
      }
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (auto& t : pool) t.join();
  return done;
}

}  // namespace invar::prove
