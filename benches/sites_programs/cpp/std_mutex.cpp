// A std::mutex in a class, taken by a method and by a guard.
#include <mutex>

#include "../c/plant.h"

class Table {
  public:
    __attribute__((noinline)) void add(int thread) {
        WAIT(thread, 1, mutex.lock());  // Table::add
        hold(thread);
        total = compute(60000 + total % 50000, total);
        release();
        mutex.unlock();
    }

    __attribute__((noinline)) void remove(int thread) {
        WAIT(thread, 2, std::lock_guard<std::mutex> guard(mutex); work(thread));  // Table::remove
    }

  private:
    void work(int thread) {
        hold(thread);
        total = compute(60000 + total % 50000, total);
        release();
    }

    std::mutex mutex;
    uint64_t total = 1;
};

static Table table;

static void turn(int thread, uint64_t round) {
    if (round % 2)
        table.add(thread);
    else
        table.remove(thread);
    compute(2000, round);
}

int main(int argc, char **argv) { return plant(argc > 1 ? atoi(argv[1]) : 4); }
