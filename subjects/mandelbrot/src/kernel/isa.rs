//! The same loops, compiled for more instructions than the build may assume, and the only
//! `unsafe` of this crate: calling them is sound where the processor has those instructions.

#![allow(unsafe_code)]

use super::{lanes, scalar};
use crate::image::Image;
use crate::view::Point;

#[cfg(target_arch = "x86_64")]
mod detected {
    pub fn has_fma() -> bool {
        is_x86_feature_detected!("fma")
    }

    pub fn has_avx2() -> bool {
        has_fma() && is_x86_feature_detected!("avx2")
    }

    pub fn has_avx512() -> bool {
        has_avx2() && is_x86_feature_detected!("avx512f")
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod detected {
    /// Other 64-bit architectures have it in their base set.
    pub fn has_fma() -> bool {
        true
    }

    pub fn has_avx2() -> bool {
        false
    }

    pub fn has_avx512() -> bool {
        false
    }
}

pub(super) use detected::{has_avx2, has_avx512, has_fma};

/// Defines a safe function `$name` that runs `$body` compiled with `$features`.
macro_rules! compiled_for {
    ($(#[$meta:meta])* $name:ident, $features:literal, $detected:ident, $body:path) => {
        $(#[$meta])*
        pub(super) fn $name(
            points: impl Iterator<Item = Point>,
            limit: u32,
            image: &Image,
        ) -> u64 {
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
            unsafe fn compiled(
                points: impl Iterator<Item = Point>,
                limit: u32,
                image: &Image,
            ) -> u64 {
                $body(points, limit, image)
            }
            assert!($detected());
            // SAFETY: the function's only demand is that the processor has $features, which
            // the line above has made sure of.
            unsafe { compiled(points, limit, image) }
        }
    };
}

compiled_for!(
    /// Pixel by pixel with hardware FMA.
    scalar_fma,
    "fma",
    has_fma,
    scalar::compute
);
compiled_for!(
    /// Two vectors of four doubles hide each other's latency.
    lanes_avx2,
    "avx2,fma",
    has_avx2,
    lanes::compute::<8>
);
compiled_for!(
    /// Four vectors of eight doubles hide each other's latency.
    lanes_avx512,
    "avx512f,avx2,fma",
    has_avx512,
    lanes::compute::<32>
);
