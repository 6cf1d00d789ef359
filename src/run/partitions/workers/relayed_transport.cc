// Messages through a relay, at both of its ends: see relay.h.
#include <cstring>
#include <list>
#include <thread>

#include "run/partitions/workers/message_library.h"

namespace invar::run {

std::unique_ptr<Transport> Transport::over(std::unique_ptr<Relay> relay, int size, double patience_seconds,
                                           std::function<std::string()> lost, std::function<void()> give_up) {
  // A message that is to come; what is sent is done at once.
  struct Awaited {
    Relay::Subject subject;
    void* data;
    size_t bytes;
  };
  static int sent;
  std::unique_ptr<Transport> t(new Transport);
  const std::shared_ptr<Relay> r = std::move(relay);
  Library& l = *t->library_;
  l.send = [r](int to, int tag, const void* data, int bytes) -> void* {
    r->put({to, tag}, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
    return &sent;
  };
  l.receive = [](int from, int tag, void* data, int bytes) -> void* {
    return new Awaited{{from, tag}, data, static_cast<size_t>(bytes)};
  };
  l.test = [r](void* request) {
    if (request == &sent) return r->is_open() ? 1 : -1;
    auto* const awaited = static_cast<Awaited*>(request);
    const auto data = r->take(awaited->subject);
    if (!data && r->is_open()) return 0;
    const std::unique_ptr<Awaited> done(awaited);
    if (!data || data->size() != done->bytes) return -1;
    if (!data->empty()) std::memcpy(done->data, data->data(), data->size());
    return 1;
  };
  l.arrived = [r](int from, int tag) {
    const auto bytes = r->arrived({from, tag});
    return bytes ? static_cast<int>(*bytes) : -1;
  };
  l.pause = [r](int) { r->wait(std::chrono::milliseconds(1)); };
  l.end = [r] { r->put({0, Relay::kEnd}, {}), r->finish(); };
  l.abort = [r](int) { r->close(); };
  l.lost = [r, lost = std::move(lost)] { return r->is_open() ? std::string() : lost(); };
  l.give_up = [r, give_up = std::move(give_up)] { r->close(), give_up(); };
  t->size_ = size, t->patience_ = patience_seconds;
  t->peers_.resize(static_cast<size_t>(size));
  return t;
}

// Each worker's messages that have arrived go to the run's process, whose messages go to them.
Status Transport::pass_on(Relay& relay) {
  const auto lost = [this] {
    failed_ = true;
    return Error{Code::failed, "the process that has the run is gone: the run is given up"};
  };
  std::list<std::pair<void*, std::vector<std::byte>>> on_its_way;
  bool ended = false;
  for (int turns = 0; !ended || !on_its_way.empty();) {
    while (auto message = relay.take_any()) {
      const auto [to, tag] = message->first;
      ended |= tag == Relay::kEnd;
      if (tag == Relay::kEnd) continue;
      if (to < 1 || to >= size_) return lost();
      auto& [request, data] = on_its_way.emplace_back(nullptr, std::move(message->second));
      request = library_->send(to, tag, data.data(), static_cast<int>(data.size()));
      turns = 0;
    }
    on_its_way.remove_if([&](auto& m) { return !m.first || library_->test(m.first) != 0; });
    for (int r = 1; r < size_; ++r) {
      if (heard(r) && relay.is_idle()) relay.put({r, kHeartbeat}, {});
      for (const int tag : {kHeader, kPayload})
        for (int bytes; (bytes = library_->arrived(r, tag)) >= 0; turns = 0) {
          std::vector<std::byte> data(static_cast<size_t>(bytes));
          void* const request = library_->receive(r, tag, data.data(), bytes);
          while (request && library_->test(request) == 0) std::this_thread::yield();
          relay.put({r, tag}, data);
        }
    }
    if (!ended && !relay.is_open()) return lost();
    if (++turns < kTurnsAtOnce)
      std::this_thread::yield();
    else
      relay.wait(pause_after(turns));
  }
  return {};
}

Status Transport::relay(const std::string& socket) {
  relays_ = true;
  auto relay = Relay::connect(socket);
  failed_ = !relay;
  if (!relay) return relay.error();
  const auto size = static_cast<int32_t>(size_);
  (*relay)->put(Relay::kSize, std::as_bytes(std::span(&size, 1)));
  return pass_on(**relay);
}

}  // namespace invar::run
