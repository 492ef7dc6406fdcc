//! The seek time of the arm.

use clap::ValueEnum;

use crate::time::{Time, milliseconds};

/// How the seek time grows with the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// With its square root: the arm accelerates over the first half and brakes over the second
    Root,
    /// In proportion: the arm moves at its maximum speed
    Line,
}

impl Shape {
    /// The share of the longest seek time for a share of the longest distance.
    fn at(self, share: f64) -> f64 {
        match self {
            Self::Root => share.sqrt(),
            Self::Line => share,
        }
    }

    /// Its mean over distances between uniformly random cylinders, whose density is 2·(1 − x).
    fn mean(self) -> f64 {
        match self {
            Self::Root => 8.0 / 15.0,
            Self::Line => 1.0 / 3.0,
        }
    }
}

/// `t = a + b·f(d/D)` for a distance of `d` of the disk's `D` cylinders; 0 if `d` is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekCurve {
    pub shape: Shape,
    pub settle_ms: f64,
    pub stroke_ms: f64,
}

impl SeekCurve {
    /// The curve with a mean of `average_ms` over random pairs of cylinders.
    pub fn with_average(shape: Shape, settle_ms: f64, average_ms: f64) -> Self {
        Self {
            shape,
            settle_ms,
            stroke_ms: (average_ms - settle_ms) / shape.mean(),
        }
    }

    pub fn time(&self, way: u32, cylinders: u32) -> Time {
        if way == 0 {
            return 0;
        }
        let share = f64::from(way) / f64::from(cylinders);
        milliseconds(self.settle_ms + self.stroke_ms * self.shape.at(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_that_of_the_disks_of_the_time() {
        let curve = SeekCurve::with_average(Shape::Root, 0.3, 3.5);
        assert!((curve.stroke_ms - 6.0).abs() < 1e-9);
        assert_eq!(curve.time(0, 1000), 0);
        assert_eq!(curve.time(1000, 1000), 6_300_000);
        assert_eq!(curve.time(250, 1000), 3_300_000);
    }
    #[test]
    fn each_shape_has_the_average_that_was_asked_for() {
        for shape in [Shape::Root, Shape::Line] {
            let curve = SeekCurve::with_average(shape, 0.3, 3.5);
            // Distances between all pairs of 2000 cylinders: 2·(2000 − d) of each length d.
            let cylinders = 2000u32;
            let ways = (1..cylinders).map(|way| {
                let pairs = f64::from(2 * (cylinders - way));
                pairs * curve.time(way, cylinders) as f64 / 1e6
            });
            let mean = ways.sum::<f64>() / f64::from(cylinders).powi(2);
            assert!((mean - 3.5).abs() < 0.005, "{shape:?}: {mean}");
        }
    }
}
