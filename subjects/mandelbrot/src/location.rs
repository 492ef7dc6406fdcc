//! The bookmark file: which part of the plane is computed, and how deeply.
//!
//! Lines of `key = value`, `#` comments and empty lines, chosen so that one file is valid TOML
//! and a valid Java `.properties` file at once. The heir of the `benchmark-location.xml` of
//! document 002, §7.1.1.

use std::path::Path;

use crate::error::Error;

/// The bookmark that is compiled in.
pub const BUILT_IN: &str = include_str!("../data/benchmark-location.toml");

/// A region of the complex plane with its picture size and iteration depths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Location {
    /// Left edge, real part.
    pub x_min: f64,
    /// Right edge, real part.
    pub x_max: f64,
    /// Lower edge, imaginary part.
    pub y_min: f64,
    /// Upper edge, imaginary part.
    pub y_max: f64,
    /// Pixels per line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Greatest number of iterations of a pixel at each depth.
    pub iterations_quick: u32,
    pub iterations_normal: u32,
    pub iterations_rigorous: u32,
}

/// Named iteration depths, each with its own figure in the bookmark file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Depth {
    /// Seconds on one CPU.
    Quick,
    /// About ten seconds on one CPU.
    Normal,
    /// Minutes on one CPU: document 002 asked for 30 seconds to 5 minutes.
    Rigorous,
}

/// What is wrong with a bookmark file, and where.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("line {line}: `{text}` is not `key = value`; comments start with #")]
    NotAPair { line: usize, text: String },
    #[error("line {line}: unknown key `{key}`; known are {}", KEYS.join(", "))]
    UnknownKey { line: usize, key: String },
    #[error("line {line}: key `{key}` stands twice; keep one of the two")]
    Repeated { line: usize, key: String },
    #[error("line {line}, key `{key}`: `{value}` is not {wanted}")]
    BadValue {
        line: usize,
        key: String,
        value: String,
        wanted: &'static str,
    },
    #[error("key `{key}` is missing; add a line `{key} = …`")]
    Missing { key: &'static str },
    #[error("line {line}, key `{max}`: must be greater than `{min}`")]
    EmptyRange {
        line: usize,
        min: &'static str,
        max: &'static str,
    },
}

const KEYS: [&str; 9] = [
    "x_min",
    "x_max",
    "y_min",
    "y_max",
    "width",
    "height",
    "iterations_quick",
    "iterations_normal",
    "iterations_rigorous",
];

/// Greatest width and height: a picture of four bytes a pixel must fit into memory.
pub const SIDE_MAX: u32 = 16_384;

impl Location {
    /// The compiled-in bookmark.
    #[must_use]
    pub fn built_in() -> Self {
        parse(BUILT_IN).expect("the compiled-in location is tested")
    }

    /// Reads a bookmark file.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is at fault.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::LocationUnreadable {
            path: path.into(),
            source,
        })?;
        parse(&text).map_err(|fault| Error::LocationMalformed {
            path: path.into(),
            fault,
        })
    }

    /// Greatest number of iterations of a pixel at `depth`.
    #[must_use]
    pub fn iterations(&self, depth: Depth) -> u32 {
        match depth {
            Depth::Quick => self.iterations_quick,
            Depth::Normal => self.iterations_normal,
            Depth::Rigorous => self.iterations_rigorous,
        }
    }
}

/// Reads the text of a bookmark file.
///
/// # Errors
/// The first line that is at fault, or the first key that is missing.
pub fn parse(text: &str) -> Result<Location, Fault> {
    let pairs = pairs(text)?;
    let (x_min, x_max) = pairs.range("x_min", "x_max")?;
    let (y_min, y_max) = pairs.range("y_min", "y_max")?;
    Ok(Location {
        x_min,
        x_max,
        y_min,
        y_max,
        width: pairs.integer("width", SIDE_MAX, "a whole number from 1 to 16384")?,
        height: pairs.integer("height", SIDE_MAX, "a whole number from 1 to 16384")?,
        iterations_quick: pairs.iterations("iterations_quick")?,
        iterations_normal: pairs.iterations("iterations_normal")?,
        iterations_rigorous: pairs.iterations("iterations_rigorous")?,
    })
}

struct Pair<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

struct Pairs<'a>(Vec<Pair<'a>>);

fn pairs(text: &str) -> Result<Pairs<'_>, Fault> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for (number, full_line) in text.lines().enumerate() {
        let (line, text) = (number + 1, full_line.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (key, value) = text.split_once('=').ok_or_else(|| Fault::NotAPair {
            line,
            text: text.into(),
        })?;
        let (key, value) = (key.trim(), value.trim());
        if !KEYS.contains(&key) {
            let key = key.into();
            return Err(Fault::UnknownKey { line, key });
        }
        if pairs.iter().any(|pair| pair.key == key) {
            let key = key.into();
            return Err(Fault::Repeated { line, key });
        }
        pairs.push(Pair { line, key, value });
    }
    Ok(Pairs(pairs))
}

impl Pairs<'_> {
    fn get(&self, key: &'static str) -> Result<&Pair<'_>, Fault> {
        self.0
            .iter()
            .find(|pair| pair.key == key)
            .ok_or(Fault::Missing { key })
    }

    fn range(&self, min: &'static str, max: &'static str) -> Result<(f64, f64), Fault> {
        let (low, high) = (self.coordinate(min)?, self.coordinate(max)?);
        if low < high {
            return Ok((low, high));
        }
        let line = self.get(max)?.line;
        Err(Fault::EmptyRange { line, min, max })
    }

    fn coordinate(&self, key: &'static str) -> Result<f64, Fault> {
        let pair = self.get(key)?;
        pair.value
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| pair.bad_value("a finite number such as -0.75"))
    }

    fn iterations(&self, key: &'static str) -> Result<u32, Fault> {
        self.integer(key, u32::MAX, "a whole number from 1 to 4294967295")
    }

    fn integer(&self, key: &'static str, max: u32, wanted: &'static str) -> Result<u32, Fault> {
        let pair = self.get(key)?;
        pair.value
            .parse()
            .ok()
            .filter(|number| (1..=max).contains(number))
            .ok_or_else(|| pair.bad_value(wanted))
    }
}

impl Pair<'_> {
    fn bad_value(&self, wanted: &'static str) -> Fault {
        Fault::BadValue {
            line: self.line,
            key: self.key.into(),
            value: self.value.into(),
            wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_location_has_the_size_of_the_document() {
        let location = Location::built_in();
        assert_eq!((location.width, location.height), (1016, 718));
        assert!(location.iterations_quick < location.iterations_normal);
        assert!(location.iterations_normal < location.iterations_rigorous);
    }

    #[test]
    fn the_built_in_pixels_are_square() {
        let location = Location::built_in();
        let pitch_x = (location.x_max - location.x_min) / f64::from(location.width);
        let pitch_y = (location.y_max - location.y_min) / f64::from(location.height);
        assert!((pitch_x / pitch_y - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_built_in_file_is_toml_with_the_same_values() {
        let table: toml::Table = BUILT_IN.parse().unwrap();
        let location = Location::built_in();
        assert_eq!(table.len(), KEYS.len());
        assert_eq!(table["x_min"].as_float(), Some(location.x_min));
        let quick = i64::from(location.iterations_quick);
        assert_eq!(table["iterations_quick"].as_integer(), Some(quick));
    }

    /// Replaces the value of a key in the built-in file and expects a fault.
    fn fault_with(key: &str, value: &str) -> String {
        let text: Vec<String> = BUILT_IN
            .lines()
            .map(|line| match line.split_once('=') {
                Some((name, _)) if name.trim() == key => format!("{key} = {value}"),
                _ => line.to_string(),
            })
            .collect();
        parse(&text.join("\n")).unwrap_err().to_string()
    }

    #[test]
    fn a_fault_names_line_key_and_remedy() {
        let text = fault_with("width", "wide");
        assert!(text.contains("line ") && text.contains("`width`") && text.contains("1 to 16384"));
        assert!(fault_with("height", "0").contains("`height`"));
        assert!(fault_with("height", "16385").contains("`height`"));
        assert!(fault_with("iterations_quick", "-1").contains("`iterations_quick`"));
        assert!(fault_with("x_min", "NaN").contains("finite"));
        assert!(fault_with("x_max", "-9.0").contains("greater than `x_min`"));
    }

    #[test]
    fn keys_are_refused_when_unknown_repeated_or_missing() {
        let unknown = parse("colour = 3").unwrap_err().to_string();
        assert!(unknown.contains("line 1") && unknown.contains("colour"));
        let repeated = parse("width = 3\n\nwidth = 3").unwrap_err().to_string();
        assert!(repeated.contains("line 3") && repeated.contains("twice"));
        assert_eq!(parse(""), Err(Fault::Missing { key: "x_min" }));
        assert!(matches!(
            parse("# x\nwidth"),
            Err(Fault::NotAPair { line: 2, .. })
        ));
    }
}
