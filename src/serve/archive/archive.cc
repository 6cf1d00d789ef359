#include "serve/archive/archive.h"

#include <chrono>
#include <utility>

#include "generate/requests/bound_input.h"
#include "receipt/seal.h"

namespace invar::serve {

using json::Value;

namespace {

constexpr std::chrono::seconds kBetweenTries{1};
constexpr std::chrono::seconds kBetweenExpiries{60};

int64_t now_in_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

receipt::Receipt without_prompt(receipt::Receipt r) {
  r.prompt.clear(), r.prompt_tokens.clear(), r.chat.clear();
  r.signatures.clear();  // of another hash
  return r;
}

receipt::Receipt without_answer(receipt::Receipt r) {
  r.tokens.clear(), r.text.clear(), r.finish_reason.clear(), r.logits.clear();
  return r;
}

std::string hash_of(const receipt::Receipt& r) {
  return to_hex(receipt::receipt_hash(r));
}

}  // namespace

receipt::Receipt question_of(const generate::Model& model, const generate::Request& request) {
  return receipt::seal(model.described, generate::bound_input(request, request.max_new_tokens), {}, {});
}

Archive::Archive(ArchiveOptions options, std::unique_ptr<store::Store> store, Log log)
    : options_(std::move(options)),
      store_(std::move(store)),
      log_(std::move(log)),
      thread_([this] { maintain(); }) {}

Result<std::unique_ptr<Archive>> Archive::open(ArchiveOptions options, Log log) {
  INVAR_TRY(auto store,
            options.store.empty() ? store::open_folder(options.receipts) : store::open(options.store));
  return std::unique_ptr<Archive>(new Archive(std::move(options), std::move(store), std::move(log)));
}

Archive::~Archive() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  put_waiting();
  if (const size_t lost = load().waiting; lost > 0 && log_)
    log_({{"event", "store"}, {"level", "error"}, {"message", "the server ends"}, {"receipts_lost", lost}});
}

Archive::Load Archive::load() const {
  const std::lock_guard lock(mutex_);
  size_t receipts = 0;
  for (const Waiting& waiting : waiting_) receipts += waiting.entries.size();
  return {receipts, failures_, broken_};
}

// One line when it begins, and one when it is over.
void Archive::set_broken(const Status& status) {
  if (!status) ++failures_;
  if (broken_.exchange(!status) == !status || !log_) return;
  if (status)
    log_({{"event", "store"}, {"level", "info"}, {"message", "receipts are kept again"}});
  else
    log_({{"event", "store"},
          {"level", "error"},
          {"message", status.error().message},
          {"answers", options_.go_on ? "go on; their receipts wait in memory" : "have status 503"}});
}

Status Archive::put(Waiting what) {
  const std::lock_guard order(putting_);
  put_waiting();
  bool behind = false;
  {
    const std::lock_guard lock(mutex_);
    behind = !waiting_.empty();
  }
  Status done;
  if (!behind) {
    done = store_->put(what.entries, what.records);
    set_broken(done);
    if (done || !options_.go_on) return done;
  }
  const std::lock_guard lock(mutex_);
  if (waiting_bytes_ + what.bytes > options_.memory)
    return bad_input("receipts wait for the store, and no more fit into the memory for them");
  waiting_bytes_ += what.bytes;
  waiting_.push_back(std::move(what));
  return {};
}

// What waits is kept in the order in which it came. What is kept twice is kept once.
void Archive::put_waiting() {
  for (;;) {
    Waiting first;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      first = waiting_.front();
    }
    const Status done = store_->put(first.entries, first.records);
    set_broken(done);
    if (!done) return;
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= first.bytes;
    waiting_.pop_front();
  }
}

// Tries again while the store is broken, and forgets what is old.
void Archive::maintain() {
  auto next_expiry = std::chrono::steady_clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kBetweenTries, [this] { return stopping_; });
      if (stopping_) return;
    }
    if (broken_) {
      const std::lock_guard order(putting_);
      put_waiting();
      if (const Status works = broken_ ? store_->probe() : Status(); works) set_broken(works);
    }
    if (!options_.keep.bounded() || std::chrono::steady_clock::now() < next_expiry) continue;
    next_expiry = std::chrono::steady_clock::now() + kBetweenExpiries;
    const std::lock_guard order(putting_);
    set_broken(store_->expire(options_.keep, now_in_milliseconds()));
  }
}

void Archive::remember(const std::string& id, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(id)) return;
  recent_.emplace_front(id, text);
  places_[id] = recent_.begin();
  recent_bytes_ += text.size();
  while (recent_bytes_ > options_.memory && recent_.size() > 1) {
    recent_bytes_ -= recent_.back().second.size();
    places_.erase(recent_.back().first);
    recent_.pop_back();
  }
}

Status Archive::keep(std::vector<Answered> answers) {
  Waiting what;
  for (auto& [receipt, id, key, record] : answers) {
    const bool whole = keeps_prompts() || receipt->format == receipt::kTensorFormat;  // which has no prompt
    std::string text = receipt::print(*receipt);
    if (!whole) remember(id, text);
    if (!whole) text = receipt::print(without_prompt(*receipt));
    record.time = now_in_milliseconds();
    what.bytes += text.size() + record.prompt.size() + sizeof(Waiting);
    what.entries.push_back({std::move(id), std::move(text), options_.repeats ? key : "", record.time});
    what.records.push_back(std::move(record));
  }
  return put(std::move(what));
}

void Archive::keep(store::Record record) {
  record.time = now_in_milliseconds();
  Waiting what;
  what.bytes = record.prompt.size() + sizeof(Waiting);
  what.records.push_back(std::move(record));
  (void)put(std::move(what));
}

Result<std::optional<Archive::Kept>> Archive::receipt(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(id); found != places_.end())
      return std::optional(Kept{found->second->second, std::nullopt});
    for (const Waiting& waiting : waiting_)
      for (const store::Entry& entry : waiting.entries)
        if (entry.id == id && keeps_prompts()) return std::optional(Kept{entry.text, std::nullopt});
  }
  INVAR_TRY(const auto text, store_->receipt(id));
  if (!text) return std::optional<Kept>();
  Kept kept{*text, std::nullopt};
  receipt::Receipt read;
  const auto findings = receipt::validate(*text, "the store", &read);
  if (findings && hash_of(read) != id) kept.open = std::move(read);
  return std::optional(std::move(kept));
}

std::optional<receipt::Receipt> Archive::restored(receipt::Receipt r, const std::string& id,
                                                  const receipt::Receipt& question) {
  r.prompt = question.prompt, r.prompt_tokens = question.prompt_tokens, r.chat = question.chat;
  if (hash_of(r) != id) return std::nullopt;
  return r;
}

std::optional<generate::Answer> Archive::repeat(const receipt::Receipt& question) {
  if (!options_.repeats) return std::nullopt;
  const std::string key = hash_of(question);
  const auto found = store_->answer_to(key);
  if (!found || !*found) return std::nullopt;
  receipt::Receipt read;
  if (!receipt::validate((*found)->text, "the store", &read)) return std::nullopt;
  auto whole = restored(std::move(read), (*found)->id, question);
  // The hash binds the answer to the question, whatever the store says.
  if (!whole || hash_of(without_answer(*whole)) != key) return std::nullopt;
  generate::Answer answer;
  answer.receipt = *std::move(whole);
  answer.receipt_hash = (*found)->id;
  return answer;
}

}  // namespace invar::serve
