/**
 * 125,000 sessions (some 40 MB in a heap of 80 MB), replaced 250,000 times at random, each worker in a
 * part of its own. Almost all that is allocated stays for long, so every 20 MB the serial collector
 * stops everybody to mark and compact 40 MB of small objects, some 90 ms; the workers themselves take
 * 40 ms for that, which is halved. Two thirds of the time do not get shorter with workers: collector.
 */
public final class SessionStore {
    private static final int SESSIONS = 125_000;
    private static final int REPLACED = 250_000;

    private static final class Visit {
        final Visit earlier;
        final int page;

        Visit(Visit earlier, int page) {
            this.earlier = earlier;
            this.page = page;
        }
    }

    private static final class Session {
        final byte[] token = new byte[64];
        final long user;
        Visit last;

        Session(long user) {
            this.user = user;
            for (int i = 0; i < token.length; i++) token[i] = (byte) (user >> i % 32);
            for (int i = 0; i < 8; i++) last = new Visit(last, (int) user + i);
        }

        int pages() {
            int sum = 0;
            for (Visit visit = last; visit != null; visit = visit.earlier) sum += visit.page;
            return sum;
        }
    }

    private static int serve(Session[] sessions, int start, int end, int replaced) {
        for (int i = start; i < end; i++) sessions[i] = new Session(i);
        int sum = 0;
        int random = start + 1;
        for (int i = 0; i < replaced; i++) {
            random = random * 1664525 + 1013904223;
            int slot = start + (random >>> 4) % (end - start);
            sum += sessions[slot].pages();
            sessions[slot] = new Session(i);
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] workers = new Thread[Integer.parseInt(arguments[0])];
        Session[] sessions = new Session[SESSIONS];
        int[] sums = new int[workers.length];
        for (int w = 0; w < workers.length; w++) {
            int own = w;
            int start = SESSIONS * w / workers.length;
            int end = SESSIONS * (w + 1) / workers.length;
            workers[w] = new Thread(() ->
                sums[own] = serve(sessions, start, end, REPLACED / workers.length));
            workers[w].start();
        }
        for (Thread worker : workers) worker.join();
        System.out.println(sums[0] + sessions[SESSIONS - 1].pages());
    }
}
