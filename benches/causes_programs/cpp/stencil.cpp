// A heat equation on a grid that the caches hold: each thread has as many rows as the others, and
// all meet at a barrier after each step.
#include <barrier>
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int SIDE = 770, STEPS = 600;

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<float> grids[2];
    for (auto &grid : grids) grid.assign(SIDE * SIDE, 1.0f);
    std::barrier barrier(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([&, t] {
            const int rows = SIDE - 2;
            for (int step = 0; step < STEPS; step++) {
                const float *from = grids[step % 2].data();
                float *to = grids[1 - step % 2].data();
                for (int row = 1 + rows * t / threads; row < 1 + rows * (t + 1) / threads; row++) {
                    for (int column = 1; column < SIDE - 1; column++) {
                        const float *at = from + row * SIDE + column;
                        to[row * SIDE + column] =
                            at[0] + 0.1f * (at[-1] + at[1] + at[-SIDE] + at[SIDE] - 4 * at[0]);
                    }
                }
                barrier.arrive_and_wait();
            }
        });
    }
    for (auto &one : all) one.join();
    return grids[0][SIDE + 1] < 0;
}
