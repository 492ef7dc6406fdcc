//! Cuts the image into units of work, and distributes them in static shares.

use crate::view::View;

/// How much work a thread gets at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    Pixel,
    Line,
    /// A square of so many pixels a side; those at the right and lower edges may be smaller.
    Tile(u32),
}

impl Grain {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pixel => "pixel",
            Self::Line => "line",
            Self::Tile(_) => "tile",
        }
    }
}

/// A rectangle of pixels: one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

impl Unit {
    pub const EMPTY: Self = Self {
        x: 0,
        y: 0,
        width: 0,
        height: 0,
    };
}

/// The image cut into units, numbered row by row.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub view: View,
    unit_width: u32,
    unit_height: u32,
    columns: u64,
    rows: u64,
}

impl Cut {
    #[must_use]
    pub fn new(view: View, grain: Grain) -> Self {
        let (unit_width, unit_height) = match grain {
            Grain::Pixel => (1, 1),
            Grain::Line => (view.width, 1),
            Grain::Tile(side) => (side.min(view.width), side.min(view.height)),
        };
        Self {
            view,
            unit_width,
            unit_height,
            columns: u64::from(view.width.div_ceil(unit_width)),
            rows: u64::from(view.height.div_ceil(unit_height)),
        }
    }

    /// Number of units.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.columns * self.rows
    }

    /// The units that line `y` of the picture goes through, from the left: the number of each, and how
    /// many pixels of the line are its.
    pub fn units_of_line(&self, y: u32) -> impl Iterator<Item = (u64, u32)> + use<> {
        let first = u64::from(y / self.unit_height) * self.columns;
        let (width, unit_width) = (self.view.width, self.unit_width);
        (0..self.columns as u32).map(move |column| {
            let pixels = unit_width.min(width - column * unit_width);
            (first + u64::from(column), pixels)
        })
    }

    /// The unit of this number.
    #[must_use]
    pub fn unit(&self, number: u64) -> Unit {
        let x = (number % self.columns) as u32 * self.unit_width;
        let y = (number / self.columns) as u32 * self.unit_height;
        Unit {
            x,
            y,
            width: self.unit_width.min(self.view.width - x),
            height: self.unit_height.min(self.view.height - y),
        }
    }

    /// The unit at `place` of the order in which static shares are dealt, one to each thread
    /// in turn.
    ///
    /// Lines are dealt from top to bottom. Where a row has several units, each row begins one
    /// unit further right than the row above: otherwise a thread would get whole columns of
    /// the image whenever the number of threads divides the number of units in a row, and
    /// columns differ in cost.
    #[must_use]
    pub fn dealt(&self, place: u64) -> u64 {
        let (row, column) = (place / self.columns, place % self.columns);
        row * self.columns + (column + row) % self.columns
    }
}
