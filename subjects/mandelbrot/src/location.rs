//! The bookmark file: which part of the plane is computed, and how deeply.
//!
//! The file is TOML of nine numbers. The kernel in Java reads the same files with a reader of its
//! own, so a file that is meant for both keeps to lines of `key = number` and `#` comments. It
//! replaces the `benchmark-location.xml` of document 002, §7.1.1.

use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

/// The bookmark that is compiled in.
pub const BUILT_IN: &str = include_str!("../data/benchmark-location.toml");

/// A region of the complex plane with its image size and iteration depths.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}{remedy}")]
pub struct Fault {
    /// `line 2, key `x_max`: `, as far as it is known.
    place: String,
    problem: String,
    /// What the key takes; empty if no key is to blame.
    remedy: &'static str,
}

/// Longest bookmark file.
const BYTES_MAX: u64 = 1 << 20;

/// Greatest width and height: an image of four bytes a pixel must fit into memory.
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
        let text = concurve_files::read_named_text(path, BYTES_MAX);
        let text = text.map_err(|source| Error::LocationUnreadable {
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

    /// The first key whose value has the right type and makes no sense, and why.
    fn nonsense(&self) -> Option<(&'static str, String)> {
        let coordinates = [
            ("x_min", self.x_min),
            ("x_max", self.x_max),
            ("y_min", self.y_min),
            ("y_max", self.y_max),
        ];
        let numbers = [
            ("width", self.width, SIDE_MAX),
            ("height", self.height, SIDE_MAX),
            ("iterations_quick", self.iterations_quick, u32::MAX),
            ("iterations_normal", self.iterations_normal, u32::MAX),
            ("iterations_rigorous", self.iterations_rigorous, u32::MAX),
        ];
        let infinite = coordinates.iter().find(|(_, value)| !value.is_finite());
        let outside = numbers.iter().find(|(_, n, max)| !(1..=*max).contains(n));
        if let Some((key, value)) = infinite {
            return Some((key, format!("{value} is not finite")));
        }
        if self.x_min >= self.x_max {
            return Some(("x_max", "must be greater than `x_min`".into()));
        }
        if self.y_min >= self.y_max {
            return Some(("y_max", "must be greater than `y_min`".into()));
        }
        outside.map(|(key, n, _)| (*key, format!("{n} is out of range")))
    }
}

/// Reads the text of a bookmark file.
///
/// # Errors
/// What is wrong first: a line that is no TOML, an unknown, repeated or missing key, a value that
/// makes no sense.
pub fn parse(text: &str) -> Result<Location, Fault> {
    let location: Location = toml::from_str(text).map_err(|error| {
        // Where a key is missing the span is empty and no line is to blame.
        let span = error.span().filter(|span| span.end > 0);
        let line = span.map(|span| text[..span.start].matches('\n').count());
        Fault::new(text, line, error.message().into())
    })?;
    match location.nonsense() {
        None => Ok(location),
        Some((key, problem)) => {
            let line = text.lines().position(|line| key_of(line) == key);
            Err(Fault::new(text, line, problem))
        }
    }
}

impl Fault {
    /// A fault in a line, counted from 0, or in the whole file.
    fn new(text: &str, line: Option<usize>, problem: String) -> Self {
        let key = line.and_then(|line| text.lines().nth(line)).map(key_of);
        Self {
            place: match (line, key) {
                (Some(line), Some(key)) => format!("line {}, key `{key}`: ", line + 1),
                (Some(line), None) => format!("line {}: ", line + 1),
                (None, _) => String::new(),
            },
            problem,
            remedy: match key {
                Some("x_min" | "x_max" | "y_min" | "y_max") => {
                    "; give a finite number such as -0.75"
                }
                Some("width" | "height") => "; give a whole number from 1 to 16384",
                Some("iterations_quick" | "iterations_normal" | "iterations_rigorous") => {
                    "; give a whole number from 1 to 4294967295"
                }
                _ => "",
            },
        }
    }
}

/// The key of a line of `key = value`.
fn key_of(line: &str) -> &str {
    line.split('=').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use concurve_fuzz::Target;

    use super::*;

    #[test]
    fn any_text_is_a_location_or_refused() {
        let corpus = [BUILT_IN.as_bytes().to_vec()];
        let words: [&[u8]; 6] = [b"x_min", b"width", b"=", b"nan", b"1e999", b"\xe2\x88\x92"];
        Target::new(env!("CARGO_PKG_NAME"), "location::tests::any_text", &corpus)
            .words(&words)
            .run(|text, _| match parse(&String::from_utf8_lossy(text)) {
                Ok(location) => assert!(location.nonsense().is_none()),
                Err(fault) => assert!(!fault.to_string().is_empty()),
            });
    }

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

    /// What the reader in Java understands: see `Location.java`.
    #[test]
    fn the_built_in_file_is_also_lines_of_key_and_number() {
        let location = Location::built_in();
        let lines = BUILT_IN.lines().filter(|line| !line.starts_with('#'));
        let pairs: Vec<(&str, f64)> = lines
            .map(|line| line.split_once(" = ").unwrap())
            .map(|(key, number)| (key, number.parse().unwrap()))
            .collect();
        assert_eq!(pairs.len(), 9);
        assert_eq!(pairs[0], ("x_min", location.x_min));
        let quick = f64::from(location.iterations_quick);
        assert!(pairs.contains(&("iterations_quick", quick)));
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
        assert!(unknown.contains("line 1") && unknown.contains("unknown field `colour`"));
        let repeated = parse("width = 3\n\nwidth = 3").unwrap_err().to_string();
        assert!(repeated.contains("line 3") && repeated.contains("duplicate key"));
        for missing in [
            "", "
# x
",
        ] {
            let fault = parse(missing).unwrap_err().to_string();
            assert_eq!(fault, "missing field `x_min`");
        }
        assert!(
            parse("# x\nwidth")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
    }
}
