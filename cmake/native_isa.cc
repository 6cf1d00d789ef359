// Prints those of its arguments, names of instruction sets and of extensions, that this processor
// runs.
#include <cstdio>

#include "base/isa.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (invar::runs_here(argv[i]) && std::puts(argv[i]) < 0) return 1;
  return 0;
}
