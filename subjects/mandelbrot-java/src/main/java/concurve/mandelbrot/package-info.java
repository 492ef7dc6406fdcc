/**
 * The JVM kernel of document 002: escape time of the Mandelbrot set in {@code double}, shared among
 * threads in the ways that the document compared.
 *
 * <p>{@link concurve.mandelbrot.View} and {@link concurve.mandelbrot.Kernel} define the computation,
 * {@link concurve.mandelbrot.Handout} assigns work to threads, and {@link concurve.mandelbrot.Workers}
 * are the threads. {@code docs/programs/mandelbrot-java.md} is the user's page
 * and {@code docs/decisions/0008-kernel-recurrence.md} defines the arithmetic to the bit. The native
 * twin is {@code subjects/mandelbrot}.
 */
package concurve.mandelbrot;
