// Prints the first of its arguments, names of instruction sets, that this processor runs.
#include <cstdio>

#include "base/isa.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (invar::runs_here(argv[i])) return std::puts(argv[i]) < 0;
  return 1;
}
