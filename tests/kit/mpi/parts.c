/* An MPI program whose ranks end as they are told: RANK:WHEN:HOW ...
 *
 * WHEN is pre (before MPI_Init), mid (after a barrier) or post (after MPI_Finalize); HOW is an
 * exit code, k (SIGKILL), a (SIGABRT), s (sleeps on) or DIR, where it makes a file of its
 * rank's name with its pid and sleeps.  Ranks that are told nothing pass a ring, and each
 * prints the sum it got.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int argc_;
static char **argv_;

static const char *number(void) {
    const char *names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i])) return getenv(names[i]);
    return "0";
}

static void maybe_end(const char *when) {
    for (int i = 1; i < argc_; i++) {
        char *copy = strdup(argv_[i]), *rank = strtok(copy, ":");
        char *at = strtok(NULL, ":"), *how = strtok(NULL, "");
        if (!at || !how || strcmp(at, when) || (strcmp(rank, number()) && strcmp(rank, "*")))
            continue;
        fflush(NULL);
        if (!strcmp(how, "k")) raise(SIGKILL);
        if (!strcmp(how, "a")) raise(SIGABRT);
        if (how[0] == '/') {
            char path[4096], ready[4096];
            snprintf(path, sizeof path, "%s/.%s", how, number());
            snprintf(ready, sizeof ready, "%s/%s", how, number());
            FILE *file = fopen(path, "w");
            fprintf(file, "%d\n", (int)getpid());
            fclose(file);
            rename(path, ready);
        }
        if (!strcmp(how, "s") || how[0] == '/')
            for (;;) sleep(60);
        _exit(atoi(how));
    }
}

int main(int argc, char **argv) {
    int rank, size, value, sum = 0;
    argc_ = argc;
    argv_ = argv;
    maybe_end("pre");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    maybe_end("mid");
    value = rank;
    for (int i = 0; i < size; i++) {
        sum += value;
        MPI_Sendrecv_replace(&value, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("rank %d of %d: %d\n", rank, size, sum);
    fflush(stdout);
    MPI_Finalize();
    maybe_end("post");
    return 0;
}
