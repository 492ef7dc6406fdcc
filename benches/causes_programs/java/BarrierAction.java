import java.util.Random;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * A particle filter: the workers move their equal parts of the particles (2,000,000 dependent steps
 * a round, 2.6 ms, in all), then the action of their CyclicBarrier draws the next generation, 80,000
 * duels by one random generator (some 2 ms), while all wait. The parts are even, so nobody is waited
 * for but the one who runs the action: 40 to 50 % of the program are serial, which is the whole loss.
 */
public final class BarrierAction {
    private static final int PARTICLES = 80_000;
    private static final int STEPS = 25;
    private static final int ROUNDS = 100;

    private static long[] particles = new long[PARTICLES];
    private static long[] next = new long[PARTICLES];
    private static final Random RANDOM = new Random(1);

    private static void draw() {
        for (int i = 0; i < PARTICLES; i++) {
            long one = particles[RANDOM.nextInt(PARTICLES)];
            long other = particles[RANDOM.nextInt(PARTICLES)];
            next[i] = Math.abs(one) < Math.abs(other) ? one : other;
        }
        long[] last = particles;
        particles = next;
        next = last;
    }

    private static long move(int from, int to, long seed) {
        long[] moved = particles;
        for (int i = from; i < to; i++) {
            long place = moved[i];
            for (int step = 0; step < STEPS; step++) {
                seed = seed * 6364136223846793005L + 1442695040888963407L;
                place += (seed >>> 60) - 7;
            }
            moved[i] = place;
        }
        return seed;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        CyclicBarrier barrier = new CyclicBarrier(threads, BarrierAction::draw);
        Thread[] workers = new Thread[threads];
        for (int w = 0; w < threads; w++) {
            int from = (int) ((long) PARTICLES * w / threads);
            int to = (int) ((long) PARTICLES * (w + 1) / threads);
            workers[w] = new Thread(() -> {
                long seed = from + 1;
                try {
                    for (int round = 0; round < ROUNDS; round++) {
                        seed = move(from, to, seed);
                        barrier.await();
                    }
                } catch (InterruptedException | BrokenBarrierException error) {
                    throw new IllegalStateException(error);
                }
            });
            workers[w].start();
        }
        for (Thread worker : workers) worker.join();
        System.out.println(particles[0]);
    }
}
