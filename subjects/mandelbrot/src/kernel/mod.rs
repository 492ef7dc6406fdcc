//! Escape time, computed with the best instructions that the processor has.
//!
//! The arithmetic is defined to the bit in `docs/decisions/0008-kernel-recurrence.md`; every path
//! gives the same iteration count for the same point.

mod isa;
mod lanes;
mod scalar;

use crate::image::Image;
use crate::view::Point;

pub use scalar::escape_time;

/// A way to compute: how many pixels at once, with which instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Pixel by pixel, fused multiply-add in hardware (x86 FMA, or any other architecture).
    Scalar,
    /// Pixel by pixel on an x86 processor without FMA: the same values, very slowly.
    ScalarSoftware,
    /// Several pixels at once, with the base instruction set of the architecture.
    Lanes,
    /// Eight pixels at once in two vectors of AVX2.
    LanesAvx2,
    /// Thirty-two pixels at once in four vectors of AVX-512.
    LanesAvx512,
}

impl Path {
    /// The fastest path of this processor, with or without SIMD.
    #[must_use]
    pub fn best(simd: bool) -> Self {
        let wanted: &[Self] = if simd {
            &[Self::LanesAvx512, Self::LanesAvx2, Self::Lanes]
        } else {
            &[Self::Scalar, Self::ScalarSoftware]
        };
        *wanted
            .iter()
            .find(|path| path.is_available())
            .expect("the last of each list is always available")
    }

    /// Every path of this processor.
    #[must_use]
    pub fn available() -> Vec<Self> {
        [
            Self::Scalar,
            Self::ScalarSoftware,
            Self::Lanes,
            Self::LanesAvx2,
            Self::LanesAvx512,
        ]
        .into_iter()
        .filter(Self::is_available)
        .collect()
    }

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::ScalarSoftware => "scalar-software-fma",
            Self::Lanes => "simd-portable",
            Self::LanesAvx2 => "simd-avx2",
            Self::LanesAvx512 => "simd-avx512",
        }
    }

    fn is_available(&self) -> bool {
        match self {
            Self::Scalar => isa::has_fma(),
            Self::ScalarSoftware | Self::Lanes => true,
            Self::LanesAvx2 => isa::has_avx2(),
            Self::LanesAvx512 => isa::has_avx512(),
        }
    }

    /// Computes `points`, each with at most `limit` iterations, into `picture`; returns the sum
    /// of their iteration counts.
    ///
    /// # Panics
    /// This processor lacks the path.
    pub fn compute(self, points: impl Iterator<Item = Point>, limit: u32, image: &Image) -> u64 {
        assert!(self.is_available(), "{} is not available", self.name());
        match self {
            Self::Scalar => isa::scalar_fma(points, limit, image),
            Self::ScalarSoftware => scalar::compute(points, limit, image),
            Self::Lanes => lanes::compute::<8>(points, limit, image),
            Self::LanesAvx2 => isa::lanes_avx2(points, limit, image),
            Self::LanesAvx512 => isa::lanes_avx512(points, limit, image),
        }
    }
}
