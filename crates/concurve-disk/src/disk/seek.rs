//! How long the arm needs.

use crate::time::{Time, milliseconds};

/// `t = a + b·√(d/D)` for a way of `d` of the disk's `D` cylinders, 0 for none.
///
/// The mean over uniformly random pairs of cylinders is `a + b·8/15`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekCurve {
    pub settle_ms: f64,
    pub stroke_ms: f64,
}

impl SeekCurve {
    /// The curve with a mean of `average_ms` over random pairs of cylinders.
    pub fn with_average(settle_ms: f64, average_ms: f64) -> Self {
        Self {
            settle_ms,
            stroke_ms: (average_ms - settle_ms) * 15.0 / 8.0,
        }
    }

    pub fn time(&self, way: u32, cylinders: u32) -> Time {
        if way == 0 {
            return 0;
        }
        let share = f64::from(way) / f64::from(cylinders);
        milliseconds(self.settle_ms + self.stroke_ms * share.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_that_of_the_disks_of_the_time() {
        let curve = SeekCurve::with_average(0.3, 3.5);
        assert!((curve.stroke_ms - 6.0).abs() < 1e-9);
        assert_eq!(curve.time(0, 1000), 0);
        assert_eq!(curve.time(1000, 1000), 6_300_000);
        assert_eq!(curve.time(250, 1000), 3_300_000);
    }
}
