/**
 * For each of 3,400 documents the most similar earlier one; the documents are dealt out in blocks, as
 * many to each worker. Document i has i comparisons, so with 2 workers the second has three quarters of
 * the work and the first ends after a third of its time: 1.33, and nothing is shared but what is only
 * read (0.9 MB): imbalance.
 */
public final class Similarity {
    private static final int DOCUMENTS = 3_400;
    private static final int TERMS = 64;

    private static float similarity(float[] one, float[] other) {
        float sum = 0;
        for (int i = 0; i < TERMS; i++) sum += one[i] * other[i];
        return sum;
    }

    private static int mostSimilar(float[][] documents, int document) {
        int best = -1;
        float highest = -1;
        for (int other = 0; other < document; other++) {
            float found = similarity(documents[document], documents[other]);
            if (found > highest) {
                highest = found;
                best = other;
            }
        }
        return best;
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] workers = new Thread[Integer.parseInt(arguments[0])];
        float[][] documents = new float[DOCUMENTS][TERMS];
        int random = 1;
        for (float[] document : documents) {
            for (int i = 0; i < TERMS; i++) {
                random = random * 1664525 + 1013904223;
                document[i] = (random >>> 8) / (float) (1 << 24);
            }
        }
        int[] nearest = new int[DOCUMENTS];
        for (int w = 0; w < workers.length; w++) {
            int start = DOCUMENTS * w / workers.length;
            int end = DOCUMENTS * (w + 1) / workers.length;
            workers[w] = new Thread(() -> {
                for (int i = start; i < end; i++) nearest[i] = mostSimilar(documents, i);
            });
            workers[w].start();
        }
        for (Thread worker : workers) worker.join();
        System.out.println(nearest[DOCUMENTS - 1]);
    }
}
