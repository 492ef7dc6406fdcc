//! Programs with much output.

use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};

use crate::error::Error;

/// Write much output, in numbered lines
///
/// Line k is `line k`, padded with dots to --line-bytes including its end, so that a reader can
/// tell which lines were kept and which were dropped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets output --bytes 100000000
  concurve-targets output --lines 1000 --stream both")]
pub struct Output {
    #[command(flatten)]
    amount: Amount,
    /// Bytes of a line, its end included
    #[arg(long, value_name = "L", default_value_t = 80,
          value_parser = clap::value_parser!(u32).range(32..=1 << 24))]
    line_bytes: u32,
    /// Where to write
    #[arg(long, value_enum, default_value_t = Stream::Stdout)]
    stream: Stream,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Amount {
    /// Bytes on each stream; the last line may be cut
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
    /// Lines on each stream
    #[arg(long, value_name = "N")]
    lines: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Stream {
    Stdout,
    Stderr,
    /// To both streams, alternating line by line
    Both,
}

impl Output {
    pub fn run(&self) -> Result<(), Error> {
        let mut streams: Vec<Box<dyn Write>> = Vec::new();
        if self.stream != Stream::Stderr {
            // Without a buffer, std's stdout would write each line separately.
            streams.push(Box::new(BufWriter::with_capacity(
                1 << 16,
                io::stdout().lock(),
            )));
        }
        if self.stream != Stream::Stdout {
            streams.push(Box::new(BufWriter::with_capacity(
                1 << 16,
                io::stderr().lock(),
            )));
        }
        self.write_to(&mut streams)
            .map_err(Error::io(|| "write the output".to_owned()))
    }

    fn write_to(&self, streams: &mut [Box<dyn Write>]) -> io::Result<()> {
        let line_bytes = u64::from(self.line_bytes);
        let mut left = match self.amount.lines {
            Some(lines) => lines.saturating_mul(line_bytes),
            None => self.amount.bytes.unwrap_or(0),
        };
        let mut number = 0;
        while left > 0 {
            number += 1;
            let line = line(number, self.line_bytes as usize);
            let length = left.min(line_bytes);
            for stream in &mut *streams {
                stream.write_all(&line[..length as usize])?;
            }
            left -= length;
        }
        streams.iter_mut().try_for_each(|stream| stream.flush())
    }
}

fn line(number: u64, bytes: usize) -> Vec<u8> {
    let mut line = format!("line {number} ").into_bytes();
    line.resize(bytes - 1, b'.');
    line.push(b'\n');
    line
}
