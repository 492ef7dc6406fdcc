/* All threads use one connection of SQLite, whose lock is in its library. HELD: rows that a statement
   counts; APART: steps. */
#include "plant.h"

int sqlite3_open_v2(const char *, void **, int, const char *);
int sqlite3_exec(void *, const char *, int (*)(void *, int, char **, char **), void *, char **);

enum { READ_WRITE = 2, CREATE = 4, FULL_MUTEX = 0x10000 };
static void *connection;
static char statement[200];

static void prepare(void) {
    if (sqlite3_open_v2(":memory:", &connection, READ_WRITE | CREATE | FULL_MUTEX, NULL) != 0)
        exit(1);
    snprintf(statement, sizeof statement,
             "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT %ld) "
             "SELECT count(*) FROM c",
             held);
}

static __attribute__((noinline)) void ask(void) {
    if (sqlite3_exec(connection, statement, NULL, NULL, NULL) != 0)
        exit(1);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    ask();
    *seed = work(*seed, apart);
}
