//! The image's pixels as points of the complex plane.

use crate::location::Location;

/// What is computed: a region, its pixels and the iteration limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    pub x_min: f64,
    pub y_max: f64,
    /// Distance of neighbouring pixels.
    pub pitch_x: f64,
    pub pitch_y: f64,
    pub width: u32,
    pub height: u32,
    /// Greatest number of iterations of a pixel.
    pub iterations: u32,
}

/// One pixel to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Index in the image, line by line from the top left.
    pub index: usize,
    /// Real part of c.
    pub re: f64,
    /// Imaginary part of c.
    pub im: f64,
}

impl View {
    /// The region of `location` in `width` by `height` pixels.
    #[must_use]
    pub fn new(location: &Location, width: u32, height: u32, iterations: u32) -> Self {
        Self {
            x_min: location.x_min,
            y_max: location.y_max,
            pitch_x: (location.x_max - location.x_min) / f64::from(width),
            pitch_y: (location.y_max - location.y_min) / f64::from(height),
            width,
            height,
            iterations,
        }
    }

    #[must_use]
    pub fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The centre of pixel (x, y); y counts lines downwards from the top.
    #[must_use]
    pub fn point(&self, x: u32, y: u32) -> Point {
        Point {
            index: y as usize * self.width as usize + x as usize,
            re: (f64::from(x) + 0.5).mul_add(self.pitch_x, self.x_min),
            im: (f64::from(y) + 0.5).mul_add(-self.pitch_y, self.y_max),
        }
    }
}
