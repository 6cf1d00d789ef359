// The socket of a relay, see relay.h.
#include "run/partitions/workers/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace invar::run {
namespace {

constexpr uint64_t kMostOfMessage = uint64_t{1} << 31;  // more than a message of MPI has
constexpr auto kLastWords = std::chrono::seconds(2);

}  // namespace

Relay::Relay(int descriptor) : descriptor_(descriptor) {
  ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
}

Relay::~Relay() {
  close();
}

Result<std::unique_ptr<Relay>> Relay::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return bad_input(path + ": too long for the name of a socket");
  path.copy(address.sun_path, path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 ||
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    return bad_input("workers: the first host is not that of the run, which has " + path + " (" + why +
                     "): name this machine first");
  }
  return std::make_unique<Relay>(descriptor);
}

void Relay::put(Subject subject, std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  const Frame frame{subject.first, subject.second, data.size()};
  std::vector<std::byte>& bytes = out_.emplace_back(sizeof frame + data.size());
  std::memcpy(bytes.data(), &frame, sizeof frame);
  std::ranges::copy(data, bytes.begin() + sizeof frame);
  write_some();
}

std::optional<size_t> Relay::arrived(Subject subject) {
  const std::lock_guard lock(mutex_);
  progress();
  const auto found = in_.find(subject);
  if (found == in_.end()) return std::nullopt;
  return found->second.front().size();
}

std::optional<std::vector<std::byte>> Relay::take(Subject subject) {
  const std::lock_guard lock(mutex_);
  progress();
  const auto found = in_.find(subject);
  if (found == in_.end()) return std::nullopt;
  std::vector<std::byte> first = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) in_.erase(found);
  return first;
}

std::optional<std::pair<Relay::Subject, std::vector<std::byte>>> Relay::take_any() {
  std::optional<Subject> subject;
  {
    const std::lock_guard lock(mutex_);
    progress();
    if (in_.empty()) return std::nullopt;
    subject = in_.rbegin()->first;  // the end has the least tag: it comes after all else
  }
  return std::pair(*subject, *take(*subject));
}

bool Relay::is_idle() {
  const std::lock_guard lock(mutex_);
  progress();
  return out_.empty();
}

bool Relay::is_open() {
  const std::lock_guard lock(mutex_);
  progress();
  return descriptor_ >= 0;
}

void Relay::wait(std::chrono::microseconds most) {
  pollfd from{-1, POLLIN, 0};
  {
    const std::lock_guard lock(mutex_);
    from.fd = descriptor_;
    if (!out_.empty()) from.events |= POLLOUT;
  }
  const auto whole = std::chrono::floor<std::chrono::seconds>(most);
  const timespec time{whole.count(), static_cast<long>((most - whole).count()) * 1000};
  ::ppoll(&from, 1, &time, nullptr);
}

void Relay::finish() {
  const auto last = std::chrono::steady_clock::now() + kLastWords;
  for (std::unique_lock lock(mutex_); !out_.empty() && std::chrono::steady_clock::now() < last;) {
    pollfd to{descriptor_, POLLOUT, 0};
    ::poll(&to, 1, 50);
    progress();
  }
  close();
}

void Relay::close() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  out_.clear();
}

void Relay::progress() {
  if (descriptor_ >= 0) write_some();
  if (descriptor_ >= 0) read_some();
}

void Relay::write_some() {
  while (descriptor_ >= 0 && !out_.empty()) {
    const std::vector<std::byte>& first = out_.front();
    const ssize_t n =
        ::send(descriptor_, first.data() + written_, first.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) out_.clear(), written_ = 0;  // reading finds the end
      return;
    }
    written_ += static_cast<size_t>(n);
    if (written_ == first.size()) out_.pop_front(), written_ = 0;
  }
}

void Relay::read_some() {
  for (;;) {
    const bool in_head = read_ < sizeof frame_;
    std::byte* const to =
        in_head ? reinterpret_cast<std::byte*>(&frame_) + read_ : payload_.data() + (read_ - sizeof frame_);
    const size_t wanted = in_head ? sizeof frame_ - read_ : payload_.size() - (read_ - sizeof frame_);
    if (wanted > 0) {
      const ssize_t n = ::recv(descriptor_, to, wanted, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) {
        ::close(descriptor_);
        descriptor_ = -1;
        return;
      }
      read_ += static_cast<size_t>(n);
    }
    if (read_ == sizeof frame_ && in_head) {
      if (frame_.bytes > kMostOfMessage) {
        ::close(descriptor_);
        descriptor_ = -1;
        return;
      }
      payload_.resize(frame_.bytes);
    }
    if (read_ < sizeof frame_ || read_ - sizeof frame_ < payload_.size()) continue;
    in_[{frame_.peer, frame_.tag}].push_back(std::exchange(payload_, {}));
    read_ = 0;
  }
}

}  // namespace invar::run
