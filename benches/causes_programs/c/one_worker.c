// One thread does all of the work, however many are asked for.
#include "work.h"

static volatile uint64_t sink;

int main(void) {
    sink = compute(400000000, 1);
}
