//! Computes several pixels at once, one in each lane of a SIMD vector.
//!
//! Plain arrays and loops: inside a function that may use wide vectors the compiler makes
//! vector instructions of them (see [`super::isa`]). A lane whose pixel is done counts no more
//! and takes the next pixel at the end of its block.

use crate::image::Image;
use crate::view::Point;

/// Iterations between two checks for lanes that are done.
const BLOCK: usize = 32;

/// The value for a lane whose pixel has not left the circle; the other lanes have 0.
const ALIVE: u64 = u64::MAX;

struct Lanes<const N: usize> {
    c_re: [f64; N],
    c_im: [f64; N],
    re: [f64; N],
    im: [f64; N],
    alive: [u64; N],
    count: [u64; N],
    /// Place in the picture; absent: the lane is idle.
    index: [Option<usize>; N],
}

/// Computes `N` pixels at once; returns the sum of the iteration counts.
#[inline(always)]
pub(super) fn compute<const N: usize>(
    mut points: impl Iterator<Item = Point>,
    limit: u32,
    image: &Image,
) -> u64 {
    let mut lanes = Lanes::<N>::idle();
    let mut sum = 0;
    let mut busy = 0;
    for lane in 0..N {
        busy += usize::from(lanes.take(lane, points.next()));
    }
    while busy > 0 {
        lanes.advance();
        if !lanes.any_done(limit) {
            continue;
        }
        for lane in 0..N {
            let Some((index, count)) = lanes.result(lane, limit) else {
                continue;
            };
            image.set(index, count);
            sum += u64::from(count);
            busy -= usize::from(!lanes.take(lane, points.next()));
        }
    }
    sum
}

impl<const N: usize> Lanes<N> {
    fn idle() -> Self {
        Self {
            c_re: [0.0; N],
            c_im: [0.0; N],
            re: [0.0; N],
            im: [0.0; N],
            alive: [ALIVE; N],
            count: [0; N],
            index: [None; N],
        }
    }

    /// Starts a point in a lane, or leaves the lane idle; says which.
    #[inline(always)]
    fn take(&mut self, lane: usize, point: Option<Point>) -> bool {
        self.index[lane] = point.map(|point| point.index);
        self.c_re[lane] = point.map_or(0.0, |point| point.re);
        self.c_im[lane] = point.map_or(0.0, |point| point.im);
        self.re[lane] = 0.0;
        self.im[lane] = 0.0;
        self.alive[lane] = ALIVE;
        self.count[lane] = 0;
        point.is_some()
    }

    /// One block of iterations in every lane.
    #[inline(always)]
    fn advance(&mut self) {
        let (c_re, c_im) = (self.c_re, self.c_im);
        let (mut re, mut im) = (self.re, self.im);
        let (mut alive, mut count) = (self.alive, self.count);
        for _ in 0..BLOCK {
            for i in 0..N {
                let inside = re[i].mul_add(re[i], im[i] * im[i]) <= 4.0;
                alive[i] &= if inside { ALIVE } else { 0 };
                count[i] = count[i].wrapping_sub(alive[i]);
                let rest = (-im[i]).mul_add(im[i], c_re[i]);
                im[i] = (re[i] + re[i]).mul_add(im[i], c_im[i]);
                re[i] = re[i].mul_add(re[i], rest);
            }
        }
        (self.re, self.im) = (re, im);
        (self.alive, self.count) = (alive, count);
    }

    #[inline(always)]
    fn any_done(&self, limit: u32) -> bool {
        let mut done = false;
        for i in 0..N {
            done |= self.alive[i] == 0 || self.count[i] >= u64::from(limit);
        }
        done
    }

    /// Place and iteration count of a lane's pixel if it is done.
    #[inline(always)]
    fn result(&self, lane: usize, limit: u32) -> Option<(usize, u32)> {
        let index = self.index[lane]?;
        match u32::try_from(self.count[lane]) {
            Ok(count) if count < limit => (self.alive[lane] == 0).then_some((index, count)),
            _ => Some((index, limit)),
        }
    }
}
