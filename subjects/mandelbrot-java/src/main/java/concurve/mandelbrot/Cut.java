package concurve.mandelbrot;

/**
 * The image cut into units of work, numbered row by row.
 *
 * @param unitWidth pixels a line of a unit; those at the right edge may be smaller
 * @param unitHeight lines of a unit; those at the lower edge may be fewer
 */
record Cut(View view, int unitWidth, int unitHeight, int columns, int rows) {

    /** How much one hand-out gives. */
    enum Grain {
        PIXEL,
        LINE,
        TILE
    }

    static Cut of(View view, Grain grain, int tileSize) {
        return switch (grain) {
            case PIXEL -> of(view, 1, 1);
            case LINE -> of(view, view.width(), 1);
            case TILE ->
                    of(view, Math.min(tileSize, view.width()), Math.min(tileSize, view.height()));
        };
    }

    private static Cut of(View view, int width, int height) {
        int columns = (view.width() + width - 1) / width;
        int rows = (view.height() + height - 1) / height;
        return new Cut(view, width, height, columns, rows);
    }

    int units() {
        return columns * rows;
    }

    /**
     * The unit at {@code place} of the order in which static shares are dealt, one to each thread in
     * turn.
     *
     * <p>Lines are dealt from top to bottom. Where a row has several units, each row begins one unit
     * further right than the row above: otherwise a thread would get whole columns of the image
     * whenever the number of threads divides the number of units in a row, and columns differ in
     * cost.
     */
    int dealt(int place) {
        int row = place / columns;
        int column = place % columns;
        return row * columns + (int) (((long) column + row) % columns);
    }

    /** Pixels of a unit. */
    int pixels(int unit) {
        return width(unit) * height(unit);
    }

    /**
     * Computes a unit into {@code counts}.
     *
     * @return the sum of the iteration counts of its pixels
     */
    long compute(int unit, int[] counts) {
        int x = unit % columns * unitWidth;
        int y = unit / columns * unitHeight;
        return Kernel.compute(view, x, y, width(unit), height(unit), counts);
    }

    private int width(int unit) {
        return Math.min(unitWidth, view.width() - unit % columns * unitWidth);
    }

    private int height(int unit) {
        return Math.min(unitHeight, view.height() - unit / columns * unitHeight);
    }
}
