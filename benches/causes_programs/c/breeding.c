// A genetic algorithm: each generation is judged by threads that are started for it and joined, and
// then bred by the main thread alone, out of one random generator. Per individual, judging takes 512
// steps of 1.4 ns and breeding 320 of about 2.2 ns: half of the time is serial, while no worker even
// exists. On two CPUs 0.5 + 0.25 remain of 1; starting threads is 0.1 ms of each 3 ms.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POPULATION = 2048, GENES = 64, ROUNDS = 8, GENERATIONS = 180 };

static unsigned char people[POPULATION][GENES], children[POPULATION][GENES];
static uint32_t scores[POPULATION];
static uint64_t state = 0x9e3779b97f4a7c15u;

typedef struct {
    pthread_t id;
    int first, last;
} share;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *judge(void *argument) {
    share *it = argument;
    for (int i = it->first; i < it->last; i++) {
        uint32_t hash = 2166136261u, score = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (int gene = 0; gene < GENES; gene++) {
                hash = (hash ^ people[i][gene]) * 16777619u;
                score += hash >> 31;
            }
        }
        scores[i] = score;
    }
    return NULL;
}

static int winner(void) {
    int best = (int)(draw() % POPULATION);
    for (int i = 0; i < 3; i++) {
        int other = (int)(draw() % POPULATION);
        if (scores[other] > scores[best]) {
            best = other;
        }
    }
    return best;
}

static void breed(void) {
    for (int i = 0; i < POPULATION; i++) {
        const unsigned char *mother = people[winner()], *father = people[winner()];
        for (int gene = 0; gene < GENES; gene++) {
            unsigned char value = draw() & 1024 ? mother[gene] : father[gene];
            int bell = 0; // nearly normal: the sum of four
            for (int k = 0; k < 4; k++) {
                bell += (int)(draw() >> 60);
            }
            children[i][gene] = (unsigned char)(value + (bell - 30) / 8);
        }
    }
    memcpy(people, children, sizeof people);
}

int main(int argc, char **argv) {
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    share *shares = calloc((size_t)workers, sizeof *shares);
    for (int i = 0; i < POPULATION; i++) {
        for (int gene = 0; gene < GENES; gene++) {
            people[i][gene] = (unsigned char)(draw() >> 32);
        }
    }
    uint32_t best = 0;
    for (int generation = 0; generation < GENERATIONS; generation++) {
        for (int i = 0; i < workers; i++) {
            shares[i].first = POPULATION * i / workers;
            shares[i].last = POPULATION * (i + 1) / workers;
            pthread_create(&shares[i].id, NULL, judge, &shares[i]);
        }
        for (int i = 0; i < workers; i++) {
            pthread_join(shares[i].id, NULL);
        }
        for (int i = 0; i < POPULATION; i++) {
            best = scores[i] > best ? scores[i] : best;
        }
        breed();
    }
    printf("best %u\n", best);
    free(shares);
    return 0;
}
