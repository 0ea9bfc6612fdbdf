/* Pi, by as many ranks as there are: an MPI program for `mesos-py mpi`.
 *
 *   mesos-py local --agents 2 --port 5060 &
 *   mpicc.mpich -O2 -o pi examples/mpi_pi.c
 *   mesos-py mpi run -n 4 --file pi ./pi 1000000
 *
 * With Open MPI: mpicc.openmpi, and --backend openmpi.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    long steps = argc > 1 ? atol(argv[1]) : 1000000;
    double own = 0, pi = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    /* The area under 4 / (1 + x^2) from 0 to 1, in strips; each rank takes every size-th. */
    for (long i = rank; i < steps; i += size) {
        double x = (i + 0.5) / steps;
        own += 4 / (1 + x * x) / steps;
    }
    MPI_Reduce(&own, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

    printf("on %s: %ld strips\n", host, (steps - rank + size - 1) / size);
    if (rank == 0) printf("pi is about %.6f\n", pi);
    MPI_Finalize();
    return 0;
}
