// Threads that put lines of their own into lower case, with the global locale. The program has set
// one, so std::locale() takes a lock of the library for each letter, and counts the locale's users.
#include <cstdlib>
#include <locale>
#include <string>
#include <thread>
#include <vector>

struct Grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
};

static size_t lowered(std::string line) {
    for (char &letter : line) letter = std::tolower(letter, std::locale());
    return line.find("z");
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::locale::global(std::locale(std::locale::classic(), new Grouped));
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            size_t found = 0;
            for (long i = 0; i < 700000 / threads; i++) {
                found += lowered("The Quick Brown Fox Jumps Over A Lazy Dog " + std::to_string(i));
            }
            if (found == 0) std::abort();
        });
    }
    for (auto &one : all) one.join();
}
