// What Invar needs of MPI, as plain C functions: MPI's own constants differ between
// implementations, these do not. src/run/partitions/workers/transport.h says what they mean.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

// 0: started, with the number of this process and of all.
int invar_mpi_start(int* rank, int* size) {
  // Open MPI's own plugins look its functions up in the process.
  dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int level = 0;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
  if (level != MPI_THREAD_MULTIPLE) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  return 0;
}

// A message on its way: to be tested until it is done. Null: no memory, or MPI refused it.
void* invar_mpi_send(int to, int tag, const void* data, int bytes) {
  MPI_Request* request = malloc(sizeof *request);
  if (request && MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, request) == MPI_SUCCESS)
    return request;
  free(request);
  return NULL;
}

void* invar_mpi_receive(int from, int tag, void* data, int bytes) {
  MPI_Request* request = malloc(sizeof *request);
  if (request && MPI_Irecv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, request) == MPI_SUCCESS)
    return request;
  free(request);
  return NULL;
}

// 1: the message is done, and forgotten. 0: not yet. -1: it failed, and is forgotten.
int invar_mpi_test(void* request) {
  int done = 0;
  const int result = MPI_Test(request, &done, MPI_STATUS_IGNORE);
  if (result != MPI_SUCCESS || done) free(request);
  return result != MPI_SUCCESS ? -1 : done;
}

// The bytes of a message that has arrived; -1: none has.
int invar_mpi_arrived(int from, int tag) {
  int there = 0, bytes = 0;
  MPI_Status status;
  if (MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) return -1;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  return bytes;
}

void invar_mpi_end(void) {
  MPI_Finalize();
}

void invar_mpi_abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}
