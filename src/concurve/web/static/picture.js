// The picture of the window on its canvas: by iterations, or by the thread that computed a pixel.

const CYCLE = [[8, 14, 48], [28, 92, 168], [160, 214, 232], [250, 240, 208], [240, 162, 40], [104, 34, 30]];
const DOUBLINGS = 0.55;
const INSIDE = [4, 5, 12];
const GOLDEN_ANGLE = 137.508;
// The colours of so many counts are kept in an array.
const PLAIN_MAX = 1000000;

// The colour of a thread: neighbours in number are far apart on the colour circle, and all are as light
// as can be told from a white and from a black ground.
export function threadColour(thread) {
  return `oklch(0.64 0.17 ${((thread * GOLDEN_ANGLE + 110) % 360).toFixed(1)})`;
}

const drop = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const threads = new Map();

function rgbOfThread(thread) {
  if (!threads.has(thread)) {
    drop.fillStyle = threadColour(thread);
    drop.fillRect(0, 0, 1, 1);
    threads.set(thread, [...drop.getImageData(0, 0, 1, 1).data].slice(0, 3));
  }
  return threads.get(thread);
}

const packed = ([r, g, b]) => (0xff000000 | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;

// The colours of the kernel's own picture: by the logarithm of the count, inside dark.
function rgbOfCount(count, limit) {
  if (count >= limit) return INSIDE;
  const at = Math.log2(Math.max(count, 1)) / DOUBLINGS;
  const before = Math.floor(at);
  const share = at - before;
  const from = CYCLE[before % CYCLE.length];
  const to = CYCLE[(before + 1) % CYCLE.length];
  return from.map((value, i) => value + (to[i] - value) * share);
}

export class Painted {
  constructor(canvas) {
    this.canvas = canvas;
    this.paper = canvas.getContext("2d");
    this.byThread = false;
    this.begin(canvas.width, canvas.height, 1);
  }

  begin(width, height, limit) {
    this.canvas.width = width;
    this.canvas.height = height;
    this.width = width;
    this.limit = limit;
    this.shades = new Map();
    this.plain = new Uint32Array(Math.min(limit, PLAIN_MAX) + 1); // 0: not known yet
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.changed = null;
    this.known = new Map();
  }

  // Bytes of a line: its number, the counts of its pixels, and their threads.
  get lineBytes() {
    return 4 + 6 * this.width;
  }

  // All computers that run a browser keep numbers with the lowest byte first, as they are sent.
  take(bytes) {
    const line = bytes.slice().buffer;
    const [y] = new Uint32Array(line, 0, 1);
    const counts = new Uint32Array(line, 4, this.width);
    const threads = new Uint16Array(line, 4 + 4 * this.width, this.width);
    this.known.set(y, { counts, threads });
    this.paint(y);
  }

  paint(y) {
    const { counts, threads } = this.known.get(y);
    const { pixels, plain, width } = this;
    const first = y * width;
    for (let x = 0; x < width; x += 1) {
      const thread = this.byThread ? threads[x] : 0;
      pixels[first + x] = (thread ? 0 : plain[counts[x]]) || this.colour(counts[x], thread);
    }
    this.show(y);
  }

  // The canvas gets what has changed once a frame: each change costs it as much as a large one.
  show(y) {
    if (this.changed) {
      this.changed = [Math.min(this.changed[0], y), Math.max(this.changed[1], y)];
      return;
    }
    this.changed = [y, y];
    const { image } = this;
    requestAnimationFrame(() => {
      if (image !== this.image) return; // another picture has begun
      const [top, bottom] = this.changed;
      this.changed = null;
      this.paper.putImageData(image, 0, 0, 0, top, this.width, bottom - top + 1);
    });
  }

  repaint(byThread) {
    this.byThread = byThread;
    for (const y of this.known.keys()) this.paint(y);
  }

  colour(count, thread) {
    const key = thread * 0x100000000 + count;
    let found = this.shades.get(key);
    if (found === undefined) {
      const plain = rgbOfCount(count, this.limit);
      // What was computed stays to be seen: a thread's colour is lighter and darker with the picture.
      const light = (plain[0] + plain[1] + plain[2]) / 765;
      found = packed(thread ? rgbOfThread(thread).map((value) => value * (0.35 + 0.65 * light)) : plain);
      if (!thread && count < this.plain.length) this.plain[count] = found;
      else if (this.shades.size < 200000) this.shades.set(key, found);
    }
    return found;
  }
}
