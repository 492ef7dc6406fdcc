// The upper half of the Mandelbrot set (imaginary part 0 to 1.25), in bands of equal height: one for
// each worker. The points inside take 1000 iterations each, and more than 90 % of them lie in the
// band next to the real axis. With two bands that one has nine tenths of the work; the other worker
// has ended long before and the CPU is idle: imbalance, and nothing else is shared.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int width = 1000, height = 500, limit = 1000;

int escape(double real, double imaginary) {
    double x = 0, y = 0;
    int count = 0;
    while (count < limit && x * x + y * y < 4) {
        const double next = x * x - y * y + real;
        y = 2 * x * y + imaginary;
        x = next;
        count++;
    }
    return count;
}

int main(int argc, char **argv) {
    const int workers = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::uint16_t> picture(static_cast<std::size_t>(width) * height);
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; worker++) {
        threads.emplace_back([worker, workers, &picture] {
            for (int row = height * worker / workers; row < height * (worker + 1) / workers; row++) {
                for (int column = 0; column < width; column++) {
                    picture[static_cast<std::size_t>(row) * width + static_cast<std::size_t>(column)] =
                        static_cast<std::uint16_t>(escape(-2 + 2.5 * column / width, 1.25 * row / height));
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    long inside = 0;
    for (const std::uint16_t count : picture) {
        inside += count == limit;
    }
    std::printf("%ld inside\n", inside);
}
