// Texts are interned in a hash table under a std::mutex. HELD: texts; APART: steps.
#include "plant.hpp"
#include <mutex>
#include <unordered_map>

namespace {
std::mutex names_mutex;
std::unordered_map<std::string, int> names;

[[gnu::noinline]] int intern(const std::string &name, long times) {
    std::unique_lock<std::mutex> lock(names_mutex);
    int found = 0;
    for (long time = 0; time < times; time++)
        found += names.try_emplace(name + std::to_string(time), static_cast<int>(names.size()))
                     .first->second;
    return found;
}
} // namespace

int main(int count, char **arguments) {
    Asked it = asked(count, arguments);
    in_threads(it, [&](Seed &seed) {
        seed ^= static_cast<Seed>(intern("a name of some length: ", it.held));
        seed = work(seed | 1, it.apart);
    });
}
