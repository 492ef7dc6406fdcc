//! One pixel after the other.

use crate::image::Image;
use crate::view::Point;

/// Computes pixel by pixel; returns the sum of the iteration counts.
#[inline(always)]
pub(super) fn compute(points: impl Iterator<Item = Point>, limit: u32, image: &Image) -> u64 {
    let mut sum = 0;
    for point in points {
        let count = escape_time(point.re, point.im, limit);
        image.set(point.index, count);
        sum += u64::from(count);
    }
    sum
}

/// Number of the first z outside the circle of radius 2, from z₀ = 0; `limit` if none is
/// before it.
///
/// The recurrence is a chain: the next z waits for this one. Doubles of both parts are carried
/// along (`re2` = 2·re, `im2` = 2·im) because computing them a second time, in parallel, is
/// shorter than one addition in the chain: 12 cycles of latency for two iterations instead of
/// 15. Doubling is exact, so the values are those of the plain recurrence.
#[must_use]
#[inline(always)]
pub fn escape_time(c_re: f64, c_im: f64, limit: u32) -> u32 {
    let (c_re2, c_im2) = (c_re + c_re, c_im + c_im);
    let (mut re, mut im, mut re2, mut im2) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for count in 0..limit {
        if re.mul_add(re, im * im) > 4.0 {
            return count;
        }
        let rest = (-im).mul_add(im, c_re);
        let rest2 = (-im2).mul_add(im, c_re2);
        im = re2.mul_add(im, c_im);
        im2 = re2.mul_add(im2, c_im2);
        re2 = re2.mul_add(re, rest2);
        re = re.mul_add(re, rest);
    }
    limit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn escape_time_as_defined(c_re: f64, c_im: f64, limit: u32) -> u32 {
        let (mut re, mut im) = (0.0_f64, 0.0_f64);
        for count in 0..limit {
            if re.mul_add(re, im * im) > 4.0 {
                return count;
            }
            (re, im) = (
                re.mul_add(re, (-im).mul_add(im, c_re)),
                (re + re).mul_add(im, c_im),
            );
        }
        limit
    }

    #[test]
    fn known_points() {
        assert_eq!(escape_time(0.0, 0.0, 100), 100);
        assert_eq!(escape_time(-2.0, 0.0, 100), 100); // |z| = 2 for ever is not outside
        assert_eq!(escape_time(-1.0, 0.0, 100), 100); // 0, -1, 0, -1, …
        assert_eq!(escape_time(1.0, 0.0, 100), 3); // 0, 1, 2, 5
        assert_eq!(escape_time(3.0, 0.0, 100), 1); // 0, 3
        assert_eq!(escape_time(1e300, -1e300, 100), 1); // overflows to infinity
        assert_eq!(escape_time(3.0, 0.0, 1), 1);
    }

    proptest! {
        #[test]
        fn the_carried_doubles_change_nothing(re in -2.5..1.5, im in -1.5..1.5) {
            prop_assert_eq!(escape_time(re, im, 3000), escape_time_as_defined(re, im, 3000));
        }

        #[test]
        fn nor_do_they_far_from_or_close_to_zero(
            re in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
            im in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
        ) {
            prop_assert_eq!(escape_time(re, im, 100), escape_time_as_defined(re, im, 100));
        }
    }
}
