// What a server keeps of its answers, and what happens where it cannot: receipts without their
// prompts unless somebody asked for them, records of requests, answers to requests that come again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text/json.h"
#include "generate/engine/engine.h"
#include "store/store.h"

namespace invar::serve {

struct ArchiveOptions {
  std::string receipts;    // the folder of ID.json, where there is no store
  std::string store = {};  // as store::open() takes it; "": the folder
  bool prompts = false;    // a store has them, too; a folder always has
  bool repeats = false;    // a request that comes again gets the answer that is kept
  bool go_on = false;      // answers go on while nothing can be kept, which is done later
  store::Retention keep = {};
  size_t memory = size_t{64} << 20;  // bytes of receipts that wait for the store; of recent ones
};

// The receipt of a request that has no answer yet: its hash names all that decides the answer.
receipt::Receipt question_of(const generate::Model&, const generate::Request&);

// Of any thread. What waits for the disk says so.
class Archive {
 public:
  // Lines of the log: the members of an event.
  using Log = std::function<void(json::Value)>;
  static Result<std::unique_ptr<Archive>> open(ArchiveOptions, Log);
  // Tries to keep what waits, once.
  ~Archive();

  struct Answered {
    const receipt::Receipt* receipt;
    std::string id;
    std::string key;  // the hash of question_of() where the answer may be given again; "": it may not
    store::Record record;
  };
  // Waits, for all of them as long as for one. Where it is no error the receipts are on the disk,
  // or in memory where answers go on. An error is that of the store: ask the clients to come again.
  Status keep(std::vector<Answered>);
  // Waits. A request that has no answer; where that cannot be kept, answers do not suffer.
  void keep(store::Record);

  struct Kept {
    std::string text;                      // what is there of it
    std::optional<receipt::Receipt> open;  // without the prompt: restored() makes it whole
  };
  // Waits. Errors: the store cannot be read.
  Result<std::optional<Kept>> receipt(const std::string& id);
  // The receipt of this id, with the prompt of a question; nothing: it was another.
  static std::optional<receipt::Receipt> restored(receipt::Receipt, const std::string& id,
                                                  const receipt::Receipt& question);
  // Waits. The answer to a question that was kept. Nothing: there is none, or repeats are computed.
  std::optional<generate::Answer> repeat(const receipt::Receipt& question);

  // False: nothing can be kept now, and answers do not go on without it.
  bool takes() const { return options_.go_on || !broken_; }
  bool repeats() const { return options_.repeats; }
  bool keeps_prompts() const { return options_.store.empty() || options_.prompts; }
  bool records_prompts() const { return !options_.store.empty() && options_.prompts; }
  struct Load {
    size_t waiting = 0;  // receipts that are to be kept
    uint64_t failures = 0;
    bool broken = false;
  };
  Load load() const;

 private:
  struct Waiting {
    std::vector<store::Entry> entries;
    std::vector<store::Record> records;
    size_t bytes = 0;
  };
  Archive(ArchiveOptions, std::unique_ptr<store::Store>, Log);
  Status put(Waiting);
  void put_waiting();
  void remember(const std::string& id, const std::string& text);
  void set_broken(const Status&);
  void maintain();

  const ArchiveOptions options_;
  const std::unique_ptr<store::Store> store_;
  const Log log_;
  std::atomic<bool> broken_{false};
  std::atomic<uint64_t> failures_{0};
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  // The whole receipts of the last answers, which a store has without their prompts.
  std::list<std::pair<std::string, std::string>> recent_;
  std::map<std::string, decltype(recent_)::iterator> places_;
  size_t recent_bytes_ = 0;
  std::mutex putting_;  // one after another, in their order
  std::thread thread_;
};

}  // namespace invar::serve
