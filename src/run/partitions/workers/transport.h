// Messages between the processes of one run, by MPI. Process 0 is the run itself; the others are
// workers, which hold stages and answer it. Each gives a sign of life twice a second, whatever it
// does, and whoever waits for a process watches for it: one that dies or stops is an error after
// `patience`, never a wait without end. Time in which the watching process was stopped itself does
// not count.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "run/partitions/workers/packet.h"
#include "run/partitions/workers/relay.h"

namespace invar::run {

// The subject of a message.
enum class Kind : uint32_t {
  hello,
  find,
  keep,
  open,
  load,
  reserve,
  forget,
  pass,
  unchanged,
  close,
  quit,
  answer
};

class Transport {
 public:
  // Joins the processes that mpirun started. bad_input: this build or machine has no MPI.
  static Result<std::unique_ptr<Transport>> join(double patience_seconds);
  // Process 0 of a job whose process 0 passes messages on. `lost`: why the other end is gone.
  // `give_up`: ends it.
  static std::unique_ptr<Transport> over(std::unique_ptr<Relay> relay, int size, double patience_seconds,
                                         std::function<std::string()> lost, std::function<void()> give_up);
  // bad_input: this machine has no MPI.
  static Status check_mpi();
  // The transport of this thread or of the process; null: it runs alone.
  static Transport* current();
  static void set_current(Transport*);
  // That of this thread, for as long as this lives.
  class Here {
   public:
    explicit Here(Transport*);
    ~Here();
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    Transport* const before_;
  };
  ~Transport();

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Who a process is, for messages: "worker 2 on node7". From its hello.
  std::string name_of(int rank) const;
  // Process 0: whether a worker is on another host.
  bool is_elsewhere(int rank) const;

  // Process 0: hears every worker once, and checks that it is of this version and these numerics.
  Status greet();
  // Process 0: sends a message, or waits for the answer to it. An answer that is an error has the
  // worker's name in front.
  Status send(int to, Kind kind, const Packet& packet);
  Result<Packet> answer(int from);
  Result<Packet> call(int to, Kind kind, const Packet& packet);

  // A worker: says hello, and waits for the next message, however long it takes.
  Status say_hello();
  Result<Packet> next(Kind& kind);
  Status reply(const Result<Packet>& result);

  // Process 0 of a job, instead of greet(): passes the messages of the run's process on, until that
  // ends or closes the socket.
  Status relay(const std::string& socket);

  // Ends the run on all processes: in good order, or at once where one of them does not answer.
  void end(int exit_code);

 private:
  struct Library;
  struct Peer {
    std::string host;
    int64_t process = 0;
    uint64_t sent = 0, received = 0;  // messages
    std::chrono::steady_clock::time_point heard;
  };
  Transport();
  Status transmit(int to, Kind kind, std::span<const std::byte> payload);
  Result<Packet> receive(int from, Kind& kind);
  // A wait for something of a process, which is looked for again and again.
  struct Wait {
    int turns = 0;
    std::chrono::steady_clock::time_point looked;
  };
  Status await(int peer, void* request);
  Status watch(int peer, Wait& wait);
  bool heard(int peer);
  Error gave_up(int peer, const std::string& what);
  Status pass_on(Relay& relay);
  void beat();

  std::unique_ptr<Library> library_;
  int rank_ = 0, size_ = 1;
  double patience_ = 0;
  std::vector<Peer> peers_;
  std::atomic<bool> failed_{false};
  bool relays_ = false;
  struct Heartbeat;
  std::unique_ptr<Heartbeat> heartbeat_;
};

// A worker's words about itself, and whether process 0 can work with it. "": it can.
struct Hello {
  std::string version, numerics, host;
  int64_t process = 0;
};
extern char own_version[];  // not const: a test changes it in the program's file
Hello own_hello();
std::string mismatch(const Hello& own, const Hello& other);

}  // namespace invar::run
