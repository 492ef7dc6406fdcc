// A std::map of texts under a std::mutex. HELD: texts that are looked up; APART: steps.
#include "plant.hpp"
#include <map>
#include <mutex>

class Table {
    std::map<std::string, long> counts;
    mutable std::mutex mutex;

  public:
    void add(Seed &seed, long texts) {
        std::lock_guard<std::mutex> guard(mutex);
        for (long text = 0; text < texts; text++)
            counts["customer " + std::to_string(drawn(seed) % 500)]++;
    }
};

int main(int count, char **arguments) {
    Asked it = asked(count, arguments);
    Table table;
    in_threads(it, [&](Seed &seed) {
        table.add(seed, it.held);
        seed = work(seed, it.apart);
    });
}
