// A caller watches the library at work: phases, progress, notes. Every call comes on the caller's
// thread and changes nothing. Here a base class does nothing; the command line draws lines on the
// terminal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file/byte_progress.h"

namespace invar::generate {

// One step of the journey. Destroyed without done(): it failed, or there was nothing to do.
class Phase {
 public:
  virtual ~Phase() = default;
  // So many of `unit`, such as "tokens", are done.
  virtual void progress(int64_t /*done*/, int64_t /*total*/, std::string_view /*unit*/) {}
  // Progress in bytes: a person sees their number, the rate and the time left. False ends a
  // download; what has come is kept for the next one.
  virtual bool bytes(uint64_t /*done*/, uint64_t /*total*/) { return true; }
  virtual void done(std::string_view /*detail*/) {}
};

// A phase that gets the progress of work on bytes.
inline ByteProgress bytes_of(Phase& phase) {
  return [&phase](uint64_t done, uint64_t total) { phase.bytes(done, total); };
}

class Observer {
 public:
  virtual ~Observer() = default;
  // "download", "plan", "export", "compile", "load", "prefill", "decode", "encode" (texts),
  // "recompute" or "seal" begins. Phases may nest. Never null.
  virtual std::unique_ptr<Phase> phase(std::string_view /*name*/) { return std::make_unique<Phase>(); }
  // A note for people about something that changes no bit: "damaged" files made anew, fewer
  // "threads".
  virtual void note(std::string_view /*topic*/, std::string_view /*text*/) {}
  // The environment variable INVAR_DEBUG asks for the compiler's intermediate artifacts: they go to
  // this folder.
  virtual void artifacts(const std::string& /*folder*/) {}
  // The receipt (JSON) of a finished run that no file could take: the last chance to keep it.
  virtual void unsaved_receipt(const std::string& /*json*/) {}
};

}  // namespace invar::generate
