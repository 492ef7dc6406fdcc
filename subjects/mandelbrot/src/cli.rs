//! The command line and the printed output.

use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use concurve_reporter::Reporter;

use crate::cut::{Cut, Grain};
use crate::error::Error;
use crate::handout::Sync;
use crate::image::{Image, PngFile};
use crate::kernel::Path;
use crate::live::LiveFile;
use crate::location::{Depth, Location, SIDE_MAX};
use crate::report;
use crate::view::View;
use crate::workers::{self, Computation, ComputeOptions, Observer};

/// Compute a picture of the Mandelbrot set with threads, and print the time that it took.
///
/// Example: concurve-mandelbrot --threads 2 --sync cas --grain line --png picture.png
#[derive(Debug, Parser)]
#[command(name = "concurve-mandelbrot", version)]
struct Options {
    /// Worker threads, created before the clock starts
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,

    /// How units of work are assigned to threads
    #[arg(long, value_enum, default_value = "none")]
    sync: Sync,

    /// How much work a thread gets at a time
    #[arg(long, value_enum, default_value = "line")]
    grain: GrainName,

    /// Side of a tile in pixels, with --grain tile
    #[arg(long, value_name = "PIXELS", default_value = "32", value_parser = side())]
    tile_size: u32,

    /// Compute several pixels at once with the processor's widest vectors
    #[arg(long)]
    simd: bool,

    /// Bookmark file with region, picture size and depths [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    location: Option<PathBuf>,

    /// Which iteration depth of the bookmark file to use
    #[arg(long, value_enum, default_value = "quick")]
    depth: Depth,

    /// Iteration depth, instead of that of the bookmark file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,

    /// Pixels per line, instead of that of the bookmark file
    #[arg(long, value_name = "PIXELS", value_parser = side())]
    width: Option<u32>,

    /// Lines, instead of those of the bookmark file
    #[arg(long, value_name = "PIXELS", value_parser = side())]
    height: Option<u32>,

    /// Number of computations in this process, one after the other
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// Write the picture to a PNG file, after the clock has stopped
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,

    /// Keep the picture in this file while it is computed: the iteration counts as 32-bit numbers, line
    /// by line, then the thread of each pixel as a 16-bit number
    #[arg(long, value_name = "FILE")]
    live: Option<PathBuf>,

    /// Print the lines of the document's Listing 1 instead of `key value` lines
    #[arg(long)]
    listing: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GrainName {
    /// One pixel
    Pixel,
    /// One line of the picture
    Line,
    /// A square of --tile-size pixels a side
    Tile,
}

fn side() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(SIDE_MAX))
}

/// Parses the command line and does what it asks; wrong usage exits with 2.
pub(crate) fn run() -> Result<(), Error> {
    let options = Options::parse();
    let view = options.view()?;
    let png = options.png.as_deref().map(PngFile::open).transpose()?;
    let live = options.live.as_deref().map(LiveFile::open).transpose()?;
    let reporter = Reporter::from_environment()?;
    let compute_options = options.compute_options();
    report::facts(&reporter, facts(&view, &compute_options))?;
    let image = image(&view, &compute_options, live.is_some());
    let mut output = Output {
        view,
        listing: options.listing,
        reporter,
    };
    let mut compute =
        || workers::compute(view, compute_options, options.repeat, &image, &mut output);
    match live {
        Some(file) => file.beside(&image, compute),
        None => compute(),
    }?;
    match png {
        Some(file) => file.write(&image, view.iterations),
        None => Ok(()),
    }
}

/// The picture; for a program that shows it, also which worker computes what.
fn image(view: &View, options: &ComputeOptions, is_shown: bool) -> Image {
    let image = Image::new(view.width, view.height);
    if is_shown {
        image.with_owners(Cut::new(*view, options.grain))
    } else {
        image
    }
}

impl Options {
    fn view(&self) -> Result<View, Error> {
        let location = match &self.location {
            Some(path) => Location::read(path)?,
            None => Location::built_in(),
        };
        Ok(View::new(
            &location,
            self.width.unwrap_or(location.width),
            self.height.unwrap_or(location.height),
            self.iterations.unwrap_or(location.iterations(self.depth)),
        ))
    }

    fn compute_options(&self) -> ComputeOptions {
        ComputeOptions {
            threads: self.threads as usize,
            sync: self.sync,
            grain: match self.grain {
                GrainName::Pixel => Grain::Pixel,
                GrainName::Line => Grain::Line,
                GrainName::Tile => Grain::Tile(self.tile_size),
            },
            path: Path::best(self.simd),
        }
    }
}

fn facts(view: &View, compute_options: &ComputeOptions) -> Vec<(&'static str, serde_json::Value)> {
    let mut facts = vec![
        ("path", compute_options.path.name().into()),
        ("sync", compute_options.sync.name().into()),
        ("grain", compute_options.grain.name().into()),
        ("threads", compute_options.threads.into()),
        ("width", view.width.into()),
        ("height", view.height.into()),
        ("iterations", view.iterations.into()),
    ];
    if let Grain::Tile(side) = compute_options.grain {
        facts.push(("tile_size", side.into()));
    }
    facts
}

/// Reports and prints each computation.
struct Output {
    view: View,
    listing: bool,
    reporter: Reporter,
}

impl Observer for Output {
    fn begin(&mut self, begin_ns: u64) -> Result<(), Error> {
        Ok(report::begin(&self.reporter, begin_ns)?)
    }

    fn end(&mut self, computation: &Computation) -> Result<(), Error> {
        report::end(&self.reporter, computation)?;
        let text = if self.listing {
            listing(&self.view, computation, java_priority())
        } else {
            figures(computation)
        };
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(Error::Stdout)
    }
}

fn figures(computation: &Computation) -> String {
    format!(
        "pixel_sum {}\npixels {}\ncompute_seconds {:.6}\n",
        computation.pixel_sum,
        computation.pixels,
        computation.seconds()
    )
}

/// Listing 1 of document 002, §9.2.2, line for line.
fn listing(view: &View, computation: &Computation, priority: i64) -> String {
    let mut text = format!(
        ". . . . .\nCalculating...\nX: 1 to {}\nY: 1 to {}\n",
        view.width, view.height
    );
    for worker in &computation.workers {
        text += &format!("Thread {} done (Priority {priority})\n", worker.name);
    }
    let milliseconds = (computation.end_ns - computation.begin_ns) / 1_000_000;
    text += &format!(
        "Run time: {milliseconds}ms\nNumber of pixels rendered: {}\n",
        computation.pixels
    );
    text
}

/// The Java priority that a JVM with `-XX:ThreadPriorityPolicy=1` maps to this process's nice
/// value: 1…10 to 4…−5. Without a reading, Java's normal priority.
fn java_priority() -> i64 {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| nice(&stat))
        .map_or(5, |nice| (5 - nice).clamp(1, 10))
}

/// Field 19 of `/proc/PID/stat`; the name in field 2 may hold blanks and parentheses.
fn nice(stat: &str) -> Option<i64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(16)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::WorkerResult;

    #[test]
    fn the_listing_has_the_lines_of_the_document() {
        let worker = |name: &str| WorkerResult {
            name: name.into(),
            pixels: 364_744,
            iterations: 1,
            begin_ns: 0,
            end_ns: 1,
        };
        let computation = Computation {
            begin_ns: 1_000_000_000,
            end_ns: 5_930_000_000,
            workers: vec![worker("Thread-2"), worker("Thread-1")],
            pixels: 729_488,
            pixel_sum: 2,
        };
        let view = View::new(&Location::built_in(), 1016, 718, 10);
        assert_eq!(
            listing(&view, &computation, 5),
            ". . . . .\nCalculating...\nX: 1 to 1016\nY: 1 to 718\n\
             Thread Thread-2 done (Priority 5)\nThread Thread-1 done (Priority 5)\n\
             Run time: 4930ms\nNumber of pixels rendered: 729488\n"
        );
    }

    #[test]
    fn nice_is_field_19_of_stat() {
        let stat = "1423 (concurve (x) y) R 1 1423 1 34816 1423 4194304 90 0 0 0 0 0 0 0 30 10 1 \
                    0 120 2441216 200 18446744073709551615";
        assert_eq!(nice(stat), Some(10));
    }
}
