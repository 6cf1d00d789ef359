#include "serve/batch/runner.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "serve/batch/merge.h"

namespace invar::serve {

using json::Value;

namespace {

// Requests that may wait for a sequence: the same for each number of sequences, since a refusal
// names it.
constexpr size_t kMostChoices = size_t{1} << 20;
// How often a row may end its worker, alone: somebody else may have ended that one.
constexpr int64_t kTrials = 2;
// Lines of a stream that are read before they are computed.
constexpr size_t kReadAhead = 1024;

// Without what depends on the time or on other requests.
Value settled_body(std::string_view text, const std::string& id) {
  Value body = json::read_or_null(text, json::Order::as_written);
  if (Value* name = body.find("id"); name && name->is_string())
    *name = name->text.substr(0, name->text.rfind('-') + 1) + id.substr(0, 24);
  if (Value* created = body.find("created")) *created = 0;
  if (Value* usage = body.find("usage")) usage->erase("prompt_tokens_details");
  return body;
}

BatchResult result_of_response(int status, std::string_view text, const std::string& id,
                               const Value& worker) {
  BatchResult result;
  result.status = status, result.body = settled_body(text, id), result.worker = worker;
  if (status != 200) {
    result.kind = status < 500 ? "refused" : "failed";
    result.message = result.body.get("error").get("message").text;
  }
  for (const Value& hash : result.body.get("invar").get("receipts").items)
    result.receipts.push_back(hash.text);
  return result;
}

}  // namespace

BatchRunner::BatchRunner(const Models& models, BatchOptions options, BatchResults results, Value identity)
    : models_(models),
      options_(std::move(options)),
      results_(std::move(results)),
      identity_(std::move(identity)) {}

Status BatchRunner::open() {
  const auto sequences =
      models_.engines.empty() ? size_t{1} : static_cast<size_t>(models_.engines[0]->session().sequences());
  // An adapter has as many sequences of its own.
  window_ = (sequences + std::max<size_t>(sequences / 4, 2)) * std::max<size_t>(models_.engines.size(), 1);
  ServiceOptions how;
  how.archive.receipts = results_.receipts();
  how.queue = kMostChoices - sequences;
  how.clock = false;  // results depend on no time
  how.log = [this](const Value& event) {
    if (event.get("event").text != "store" || event.get("level").text != "error") return;
    const std::lock_guard lock(mutex_);
    unkept_ = bad_input("receipts cannot be kept: " + event.get("message").text);
    changed_.notify_all();
  };
  INVAR_TRY(service_, Service::make(models_, std::move(how)));
  service_->on_failure([this](const Error& error) {
    const std::lock_guard lock(mutex_);
    broken_ = error;
    changed_.notify_all();
  });
  return {};
}

void BatchRunner::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

// Begins what there is place for.
void BatchRunner::admit() {
  {
    const std::lock_guard lock(mutex_);
    while (!lines_.empty() && waiting_.size() < window_) {
      waiting_.push_back({{read_batch_row(lines_.front(), ++lines_read_, identity_)}});
      lines_.pop_front();
      changed_.notify_all();
    }
  }
  while (!ended_ && !alone_ && running_.size() < window_ && start_one()) {
  }
}

// Looks at the next row, or begins the next suspect where nothing runs. False: nothing is to do
// now.
bool BatchRunner::start_one() {
  // The rows of a file that are above suspicion come first; whoever sends a stream waits for each.
  if (!suspects_.empty() && (streams_ || waiting_.empty())) {
    if (!running_.empty()) return false;
    start_suspect();
    return true;
  }
  if (waiting_.empty()) return false;
  Work work = std::move(waiting_.front());
  waiting_.pop_front();
  if (!work.there && is_settled(work)) return true;
  if (const auto mark = work.there ? std::nullopt : results_.mark_of(work.rows[0].id)) {
    // Somebody else may be computing it: then it is there when its turn comes.
    work.mark = mark->runs ? BatchMark() : *mark;
    suspects_.push_back(std::move(work));
    return true;
  }
  start(std::move(work), false);
  return true;
}

bool BatchRunner::is_settled(Work& work) {
  const BatchRow& row = work.rows[0];
  if (row.id.empty()) {
    deliver(work, result_of_problem(row), false);
    return true;
  }
  if (const auto same = running_ids_.find(row.id); same != running_ids_.end()) {
    running_.at(same->second).rows.push_back(std::move(work.rows[0]));
    return true;
  }
  auto there = results_.find(row.id);
  if (!there) return false;
  if (there->is_answer() && row.rechecks) {
    work.there = std::move(there);
    return false;
  }
  if (!there->is_answer() && options_.retry_failed) {
    results_.forget(row.id);
    return false;
  }
  deliver(work, *there, true);
  return true;
}

void BatchRunner::start_suspect() {
  Work work = std::move(suspects_.front());
  suspects_.pop_front();
  const auto there = work.failures > 0 ? std::nullopt : results_.find(work.rows[0].id);
  if (there && there->is_final()) return deliver(work, *there, true);
  if (work.mark.alone < kTrials) return start(std::move(work), true);
  BatchResult crashed;
  crashed.kind = "crashed", crashed.worker = results_.worker();
  crashed.message = "the worker ended twice while it computed this row alone";
  take_result(std::move(work), crashed);
}

void BatchRunner::start(Work work, bool by_itself) {
  const BatchRow& row = work.rows[0];
  if (!work.there) {
    work.mark.alone += by_itself;
    if (const Status marked = results_.mark(row.id, work.mark); !marked) return end(marked.error(), false);
  }
  http::Request request{"POST", row.url, "", {{"content-type", "application/json"}}, row.body};
  const size_t n = ++number_;
  alone_ = by_itself;
  running_ids_.emplace(row.id, n);
  running_.emplace(n, std::move(work));
  service_->handle(std::move(request),
                   http::Responder([this, n](int status, const http::Headers&, std::string body) {
                     const std::lock_guard lock(mutex_);
                     arrived_.push_back({n, status, std::move(body)});
                     changed_.notify_all();
                   }));
}

void BatchRunner::end(Error error, bool at_once) {
  if (!ended_) ended_ = std::move(error);
  const auto until = Clock::now() + (at_once ? std::chrono::seconds(0) : options_.drain);
  deadline_ = deadline_ ? std::min(*deadline_, until) : until;
}

// Until something has come. False: nothing comes any more.
bool BatchRunner::wait() {
  std::unique_lock lock(mutex_);
  const auto news = [&] {
    return !arrived_.empty() || broken_ || ((stopped_ || unkept_) && !ended_) ||
           (!lines_.empty() && waiting_.size() < window_ && !ended_);
  };
  if (running_.empty() && (ended_ || !streams_) && !news()) return false;
  if (deadline_) {
    if (!changed_.wait_until(lock, *deadline_, news)) {
      lock.unlock();
      service_->drain(), service_->end_all();
      lock.lock();
      deadline_.reset();
    }
  } else {
    changed_.wait(lock, [&] { return news() || (running_.empty() && !streams_); });
  }
  if (broken_ && !ended_) ended_ = broken_;  // with the marks of what runs
  if ((stopped_ || unkept_) && !ended_) {
    Error why = unkept_.value_or(bad_input("ended by a signal: run the same command again to go on"));
    lock.unlock();
    end(std::move(why), false);
  }
  return true;
}

Status BatchRunner::work_off(const std::function<void(size_t)>& progress) {
  done_ = 0;
  for (;;) {
    admit();
    progress(done_);
    if (!ended_ && (!waiting_.empty() || !suspects_.empty()) && running_.empty()) continue;
    if (!wait()) break;
    std::deque<Arrived> now;
    {
      const std::lock_guard lock(mutex_);
      now.swap(arrived_);
      if (broken_ && now.empty()) return *broken_;
    }
    for (Arrived& one : now) take(std::move(one));
  }
  progress(done_);
  return ended_ ? Status(*ended_) : Status();
}

void BatchRunner::take(Arrived reply) {
  Work work = std::move(running_.extract(reply.work).mapped());
  const std::string id = work.rows[0].id;
  running_ids_.erase(id);
  alone_ = false;
  if (reply.status == 0 || reply.status == 503) {  // ended before its time
    const std::lock_guard lock(mutex_);
    if (!broken_ && !work.there) results_.unmark(id);
    return;
  }
  BatchResult result = result_of_response(reply.status, reply.body, id, results_.worker());
  if (reply.status == 429) {
    waiting_.push_front(std::move(work));
    return;
  }
  // What another moment may have the memory for is tried once more, alone.
  if (result.kind == "failed" && ++work.failures < 2) {
    suspects_.push_back(std::move(work));
    return;
  }
  take_result(std::move(work), result);
}

void BatchRunner::take_result(Work work, const BatchResult& result) {
  const std::string& id = work.rows[0].id;
  const Status kept = work.there ? results_.compare(id, *work.there, result) : results_.keep(id, result);
  if (!kept) return end(kept.error(), kept.error().code == Code::failed);
  if (work.there)
    ++counts.rechecked;
  else
    results_.unmark(id), ++counts.computed;
  deliver(work, result, false);
}

void BatchRunner::deliver(const Work& work, const BatchResult& result, bool found) {
  // Whoever kept the answer may have been killed before it removed its mark.
  if (found && result.is_answer()) results_.unmark(work.rows[0].id);
  for (const BatchRow& row : work.rows) {
    ++done_;
    if (!work.there) count_result(result, counts), counts.found += found;
    if (!give_) continue;
    Value out = merged_row(row, result);
    out["receipts"] = result.receipts;
    out["worker"] = result.worker, out["found"] = found, out["line"] = row.line;
    if (work.there) out["rechecked"] = true;
    if (const Status given = give_(out); !given) end(given.error(), true);
  }
  if (options_.max_failures && counts.errors() > static_cast<size_t>(*options_.max_failures) && !ended_)
    end(bad_input(std::to_string(counts.errors()) +
                  " rows have an error, which is more than --max-failures " +
                  std::to_string(*options_.max_failures) + ": the last is row " + work.rows[0].custom_id +
                  ": " + result.message),
        false);
}

// On a thread of its own.
void BatchRunner::read_lines(int file) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (bool open = true; open;) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_) break;
      if (lines_.size() >= kReadAhead) {
        changed_.wait_for(lock, std::chrono::milliseconds(100));
        continue;
      }
    }
    pollfd waits{file, POLLIN, 0};
    if (::poll(&waits, 1, 100) == 0) continue;
    const ssize_t n = ::read(file, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
    open = n > 0;
    if (!open && !text.empty()) text += '\n';
    const std::lock_guard lock(mutex_);
    size_t at = 0;
    for (size_t line_end; (line_end = text.find('\n', at)) != text.npos; at = line_end + 1)
      if (const std::string line = text.substr(at, line_end - at);
          line.find_first_not_of(" \t\r") != line.npos)
        lines_.push_back(line);
    text.erase(0, at);
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  streams_ = false;
  changed_.notify_all();
}

Status BatchRunner::work_off_lines(int file, std::function<Status(const Value&)> give) {
  give_ = std::move(give), streams_ = true;
  std::thread reader([&] { read_lines(file); });
  const Status worked = work_off([](size_t) {});
  stop();
  reader.join();
  return worked;
}

}  // namespace invar::serve
