// What a process may still do before it reads what strangers sent: Linux's Landlock and a filter of
// system calls. A defect that such a file reaches then finds no network, no program to start and
// nothing to write.
#pragma once

#include <string>
#include <vector>

namespace invar {

struct Confinement {
  std::vector<std::string> writable;  // folders that may be written, with all in them, if they exist
  bool network = false;               // whether sockets may still be made
};

// What holds from now on. The texts are for people; empty where it holds.
struct Confined {
  std::string files;    // why files can still be written and programs started
  std::string network;  // why sockets can still be made
};

// Confines this thread, and the threads and processes that it starts from now on, for good: call it
// before others start. Reading files is not confined. Where the kernel lacks something (Linux
// before 5.19, another system, an emulator), that part is left out and said.
Confined confine(const Confinement&);

}  // namespace invar
