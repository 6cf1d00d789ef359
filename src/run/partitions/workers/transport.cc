// Messages between processes, see transport.h.
#include "run/partitions/workers/transport.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "device/shared_library.h"
#include "plan/plan.h"
#include "run/partitions/workers/message_library.h"

namespace invar::run {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMessagePiece = size_t{256} << 20;  // MPI counts bytes in an int
constexpr uint64_t kMessageMagic = 0x313052415649;   // "IVAR01"
constexpr auto kBeat = std::chrono::milliseconds(500);
constexpr auto kStopped = std::chrono::seconds(5);  // nobody looks so rarely who runs
// A lost process 0 is reported by the first worker, and the others end with it.
constexpr double kNextWorker = 2;  // seconds

struct Header {
  uint64_t magic, number, bytes;
  uint32_t kind, check;
};

// CRC-32 of the bytes, eight at a time: a payload that arrives otherwise than it was sent is found.
uint32_t checksum(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
      t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
      for (size_t k = 1; k < 8; ++k) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xFF];
    return t;
  }();
  uint32_t c = ~0u;
  size_t i = 0;
  const auto at = [&](size_t j) { return static_cast<uint32_t>(bytes[j]); };
  for (; i + 8 <= bytes.size(); i += 8) {
    const uint32_t low = c ^ (at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24);
    c = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF] ^ table[4][low >> 24] ^
        table[3][at(i + 4)] ^ table[2][at(i + 5)] ^ table[1][at(i + 6)] ^ table[0][at(i + 7)];
  }
  for (; i < bytes.size(); ++i) c = c >> 8 ^ table[0][(c ^ at(i)) & 0xFF];
  return ~c;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "a host without a name";
}

std::string seconds_text(double s) {
  return std::to_string(static_cast<int64_t>(s + 0.5)) + " s";
}

Transport* the_transport = nullptr;
thread_local Transport* of_this_thread = nullptr;

void* open_mpi() {
  std::error_code ec;
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
  return open_library({(folder + "/libinvar_mpi.so").c_str(), "libinvar_mpi.so"});
}

}  // namespace

// The signs of life, also while this process computes.
struct Transport::Heartbeat {
  std::mutex mutex;
  std::condition_variable ends;
  bool ended = false;
  std::thread thread;
};

Transport::Transport() : library_(std::make_unique<Library>()) {}
Transport::~Transport() = default;
Transport* Transport::current() {
  return of_this_thread ? of_this_thread : the_transport;
}
void Transport::set_current(Transport* t) {
  the_transport = t;
}
Transport::Here::Here(Transport* t) : before_(std::exchange(of_this_thread, t)) {}
Transport::Here::~Here() {
  of_this_thread = before_;
}

Status Transport::check_mpi() {
  if (open_mpi()) return {};
  return bad_input(
      "workers: this build has no MPI; install libopenmpi-dev and openmpi-bin and build again, or leave "
      "--workers out");
}

Result<std::unique_ptr<Transport>> Transport::join(double patience_seconds) {
  std::unique_ptr<Transport> t(new Transport);
  INVAR_CHECK_OK(check_mpi());
  void* const opened = open_mpi();
  Library& l = *t->library_;
  l.start = function_of<int(int*, int*)>(opened, "invar_mpi_start");
  l.send = function_of<void*(int, int, const void*, int)>(opened, "invar_mpi_send");
  l.receive = function_of<void*(int, int, void*, int)>(opened, "invar_mpi_receive");
  l.test = function_of<int(void*)>(opened, "invar_mpi_test");
  l.arrived = function_of<int(int, int)>(opened, "invar_mpi_arrived");
  l.end = function_of<void()>(opened, "invar_mpi_end");
  l.abort = function_of<void(int)>(opened, "invar_mpi_abort");
  if (!l.start || !l.send || !l.receive || !l.test || !l.arrived || !l.end || !l.abort)
    return bad_input("workers: libinvar_mpi.so is of another version: build again");
  if (l.start(&t->rank_, &t->size_) != 0)
    return bad_input("workers: MPI does not start, or does not serve several threads");
  t->patience_ = patience_seconds;
  t->peers_.resize(static_cast<size_t>(t->size_));
  for (Peer& p : t->peers_) p.heard = Clock::now();
  t->beat();
  return t;
}

// One that does not take the last sign gets no other, so that it holds up nobody else's.
void Transport::beat() {
  heartbeat_ = std::make_unique<Heartbeat>();
  heartbeat_->thread = std::thread([this] {
    Heartbeat& h = *heartbeat_;
    std::vector<void*> on_its_way(rank_ == 0 ? static_cast<size_t>(size_) : 1);
    std::unique_lock lock(h.mutex);
    while (!h.ends.wait_for(lock, kBeat, [&] { return h.ended; }))
      for (size_t to = rank_ == 0 ? 1 : 0; to < on_its_way.size(); ++to) {
        void*& request = on_its_way[to];
        if (request && library_->test(request) == 0) continue;
        request = library_->send(static_cast<int>(to), kHeartbeat, nullptr, 0);
      }
  });
}

std::string Transport::name_of(int rank) const {
  const Peer& p = peers_[static_cast<size_t>(rank)];
  const std::string name = rank == 0 ? "process 0, the run itself," : "worker " + std::to_string(rank);
  return p.host.empty() ? name : name + " on " + p.host;
}

bool Transport::is_elsewhere(int rank) const {
  return peers_[static_cast<size_t>(rank)].host != host_name();
}

Error Transport::gave_up(int peer, const std::string& what) {
  failed_ = true;
  std::string line = library_->lost();
  library_->give_up();
  if (!line.empty()) return {Code::failed, std::move(line)};
  return {Code::failed, name_of(peer) + " " + what + ": the run is given up"};
}

// Takes the signs of life of a process that are there. False: none is.
bool Transport::heard(int peer) {
  bool any = false;
  for (; library_->arrived(peer, kHeartbeat) >= 0; any = true) {
    void* const request = library_->receive(peer, kHeartbeat, nullptr, 0);
    while (request && library_->test(request) == 0) std::this_thread::yield();
  }
  return any;
}

// Called again and again while something is awaited of a process.
Status Transport::watch(int peer, Wait& wait) {
  if (failed_) return Error{Code::failed, "the run was given up"};
  Peer& p = peers_[static_cast<size_t>(peer)];
  const Clock::time_point now = Clock::now();
  // Nobody looked before, or nobody here ran.
  if (wait.turns == 0 || now - wait.looked > kStopped) p.heard = now;
  wait.looked = now;
  if (heard(peer)) p.heard = now;
  const double patience = patience_ + (rank_ > 0 ? kNextWorker * (rank_ - 1) : 0);
  if (std::chrono::duration<double>(now - p.heard).count() > patience)
    return gave_up(peer, "has given no sign of life for " + seconds_text(patience_));
  if (!library_->lost().empty()) return gave_up(peer, "has closed the connection");
  library_->pause(++wait.turns);
  return {};
}

Status Transport::await(int peer, void* request) {
  if (!request) return gave_up(peer, "cannot be reached");
  for (Wait wait;;) {
    const int done = library_->test(request);
    if (done < 0) return gave_up(peer, "lost a message");
    if (done > 0) return {};
    INVAR_CHECK_OK(watch(peer, wait));
  }
}

Status Transport::transmit(int to, Kind kind, std::span<const std::byte> payload) {
  const Header header{kMessageMagic, peers_[static_cast<size_t>(to)].sent++, payload.size(),
                      static_cast<uint32_t>(kind), checksum(payload)};
  INVAR_CHECK_OK(await(to, library_->send(to, kHeader, &header, sizeof header)));
  for (size_t at = 0; at < payload.size(); at += kMessagePiece)
    INVAR_CHECK_OK(await(to, library_->send(to, kPayload, payload.data() + at,
                                            static_cast<int>(std::min(kMessagePiece, payload.size() - at)))));
  return {};
}

Result<Packet> Transport::receive(int from, Kind& kind) {
  Header header{};
  for (Wait wait; library_->arrived(from, kHeader) < 0;) INVAR_CHECK_OK(watch(from, wait));
  INVAR_CHECK_OK(await(from, library_->receive(from, kHeader, &header, sizeof header)));
  if (header.magic != kMessageMagic || header.number != peers_[static_cast<size_t>(from)].received++)
    return gave_up(from, "sent a message that does not follow the one before");
  std::vector<std::byte> payload(header.bytes);
  for (size_t at = 0; at < payload.size(); at += kMessagePiece)
    INVAR_CHECK_OK(
        await(from, library_->receive(from, kPayload, payload.data() + at,
                                      static_cast<int>(std::min(kMessagePiece, payload.size() - at)))));
  if (checksum(payload) != header.check) return gave_up(from, "sent bytes that arrived as others");
  kind = static_cast<Kind>(header.kind);
  return Packet(std::move(payload));
}

Status Transport::send(int to, Kind kind, const Packet& packet) {
  return transmit(to, kind, packet.bytes());
}

Result<Packet> Transport::answer(int from) {
  Kind kind{};
  INVAR_TRY(Packet packet, receive(from, kind));
  if (kind != Kind::answer) return gave_up(from, "sent something else than an answer");
  const int64_t code = packet.number();
  if (code == 0) return packet;
  return Error{static_cast<Code>(code), name_of(from) + ": " + packet.text()};
}

Result<Packet> Transport::call(int to, Kind kind, const Packet& packet) {
  INVAR_CHECK_OK(send(to, kind, packet));
  return answer(to);
}

Status Transport::reply(const Result<Packet>& result) {
  Packet packet;
  packet.put(result ? int64_t{0} : static_cast<int64_t>(result.error().code));
  if (!result) packet.put(std::string_view(result.error().message));
  std::vector<std::byte> bytes(packet.bytes().begin(), packet.bytes().end());
  if (result) bytes.insert(bytes.end(), result->bytes().begin(), result->bytes().end());
  return transmit(0, Kind::answer, bytes);
}

Result<Packet> Transport::next(Kind& kind) {
  return receive(0, kind);
}

Hello own_hello() {
  return {own_version + 1, std::string(plan::kNumerics), host_name(), static_cast<int64_t>(::getpid())};
}

std::string mismatch(const Hello& own, const Hello& other) {
  const auto differs = [](const char* what, const std::string& there, const std::string& here) {
    return std::string("has ") + what + " " + there + ", and the run has " + here +
           ": install the same on both";
  };
  if (other.version != own.version) return differs("Invar", other.version, own.version);
  if (other.numerics != own.numerics) return differs("numerics", other.numerics, own.numerics);
  return "";
}

Status Transport::say_hello() {
  const Hello own = own_hello();
  Packet packet;
  packet.put(std::string_view(own.version)), packet.put(std::string_view(own.numerics));
  packet.put(std::string_view(own.host)), packet.put(own.process);
  return transmit(0, Kind::hello, packet.bytes());
}

Status Transport::greet() {
  for (int r = 1; r < size_; ++r) {
    Kind kind{};
    INVAR_TRY(Packet packet, receive(r, kind));
    Hello other{packet.text(), packet.text(), packet.text(), packet.number()};
    peers_[static_cast<size_t>(r)].host = other.host;
    peers_[static_cast<size_t>(r)].process = other.process;
    if (kind != Kind::hello || !packet.ok()) return gave_up(r, "did not say what it is");
    if (const std::string wrong = mismatch(own_hello(), other); !wrong.empty())
      return bad_input(name_of(r) + " " + wrong);
  }
  return {};
}

void Transport::end(int exit_code) {
  if (rank_ == 0 && !relays_)
    for (int r = 1; r < size_ && !failed_; ++r) (void)static_cast<bool>(send(r, Kind::quit, {}));
  if (heartbeat_) {
    {
      const std::lock_guard lock(heartbeat_->mutex);
      heartbeat_->ended = true;
    }
    heartbeat_->ends.notify_all();
    heartbeat_->thread.join();
  }
  if (failed_)
    library_->abort(exit_code);
  else
    library_->end();
}

}  // namespace invar::run
