// Products of two matrices that fit the cache of a CPU; each thread has a band of the rows. Nothing
// limits it.
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int SIZE = 384, PRODUCTS = 24;

using Matrix = std::vector<float>;

static void multiply(const Matrix &a, const Matrix &b, Matrix &c, int first, int last) {
    for (int product = 0; product < PRODUCTS; product++) {
        for (int i = first; i < last; i++) {
            float *row = &c[i * SIZE];
            for (int k = 0; k < SIZE; k++) {
                const float factor = a[i * SIZE + k];
                const float *other = &b[k * SIZE];
                for (int j = 0; j < SIZE; j++) row[j] += factor * other[j];
            }
        }
    }
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    Matrix a(SIZE * SIZE, 0.5f), b(SIZE * SIZE, 0.25f), c(SIZE * SIZE);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        const int first = SIZE * t / threads, last = SIZE * (t + 1) / threads;
        all.emplace_back([&, first, last] { multiply(a, b, c, first, last); });
    }
    for (auto &one : all) one.join();
    return c[SIZE] == 0;
}
