// Clients of an upstream that answers one request after the other, each 1 ms after it came: a stub
// in a process of its own, on 127.0.0.1. The workers take some 50 us of CPU for a request and wait
// for its answer on a socket all the rest of the time. The upstream sleeps, so the CPUs are idle;
// 400 requests take 400 ms with however many workers: the wait for the network limits.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 400, ASKED = 32, ANSWERED = 256 };

static struct sockaddr_in upstream;

typedef struct {
    pthread_t id;
    int worker, workers;
    long received;
} job;

static void serve(int listener) {
    alarm(20);
    for (int i = 0; i < REQUESTS; i++) {
        int client = accept(listener, NULL, NULL);
        char asked[ASKED], answer[ANSWERED];
        size_t got = 0;
        while (got < sizeof asked) {
            ssize_t length = read(client, asked + got, sizeof asked - got);
            if (length <= 0) {
                break;
            }
            got += (size_t)length;
        }
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        memset(answer, 'a', sizeof answer);
        if (write(client, answer, sizeof answer) < 0) {
            _exit(1);
        }
        close(client);
    }
    _exit(0);
}

static void *ask(void *argument) {
    job *it = argument;
    for (int i = it->worker; i < REQUESTS; i += it->workers) {
        int server = socket(AF_INET, SOCK_STREAM, 0);
        if (server < 0 || connect(server, (struct sockaddr *)&upstream, sizeof upstream) < 0) {
            perror("upstream");
            exit(1);
        }
        char request[ASKED] = {0}, answer[ANSWERED];
        snprintf(request, sizeof request, "GET item %d", i);
        if (write(server, request, sizeof request) < 0) {
            perror("request");
            exit(1);
        }
        ssize_t length;
        while ((length = read(server, answer, sizeof answer)) > 0) {
            it->received += length;
        }
        close(server);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    upstream.sin_family = AF_INET;
    upstream.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof upstream;
    if (bind(listener, (struct sockaddr *)&upstream, size) < 0 || listen(listener, 128) < 0 ||
        getsockname(listener, (struct sockaddr *)&upstream, &size) < 0) {
        perror("listen");
        return 1;
    }
    pid_t stub = fork();
    if (stub < 0) {
        perror("fork");
        return 1;
    }
    if (stub == 0) {
        serve(listener);
    }
    close(listener);
    job *jobs = calloc((size_t)workers, sizeof *jobs);
    for (int i = 0; i < workers; i++) {
        jobs[i].worker = i;
        jobs[i].workers = workers;
        pthread_create(&jobs[i].id, NULL, ask, &jobs[i]);
    }
    long received = 0;
    for (int i = 0; i < workers; i++) {
        pthread_join(jobs[i].id, NULL);
        received += jobs[i].received;
    }
    waitpid(stub, NULL, 0);
    printf("%ld bytes\n", received);
    free(jobs);
    return 0;
}
