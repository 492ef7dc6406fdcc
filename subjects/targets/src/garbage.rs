//! Invalid content for a report channel.

use std::fs::File;
use std::io::{self, Write};

use clap::{Args, ValueEnum};
use concurve_reporter::REPORT_VARIABLE;
use concurve_reporter::{Reporter, ReporterError, open_channel};

use crate::error::Error;

/// Write garbage to the report channel, then one valid line, and exit with 0
///
/// The last line is the indicator `after_garbage` = 1: a reader that recovers receives it. The
/// kind `partial` has no last line, because its garbage has no end of line.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  concurve-targets garbage --kind unknown-keys     with CONCURVE_REPORT=1: to be read on stdout")]
pub struct Garbage {
    /// What to write
    #[arg(long, value_enum)]
    kind: Kind,
    /// Size of huge-line in bytes, of flood in lines
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    amount: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Lines that are not JSON, and JSON that is not an object
    Text,
    /// Bytes that are not UTF-8, NUL among them
    Binary,
    /// The first half of a line, then the end of the stream
    Partial,
    /// One line of --amount bytes
    HugeLine,
    /// Objects with unknown keys, missing keys and wrong types
    UnknownKeys,
    /// Valid indicator lines, --amount of them, as fast as the reader takes them
    Flood,
}

impl Garbage {
    pub fn run(&self) -> Result<(), Error> {
        let Some(channel) = open_channel()? else {
            return Err(Error::Usage(format!(
                "garbage needs a report channel: set {REPORT_VARIABLE} to an open descriptor, or run under concurve"
            )));
        };
        self.write_to(&channel).map_err(ReporterError::Write)?;
        if !matches!(self.kind, Kind::Partial) {
            Reporter::to_file(channel).indicator("after_garbage", 1.0, None)?;
        }
        Ok(())
    }

    fn write_to(&self, mut channel: &File) -> io::Result<()> {
        match self.kind {
            Kind::Text => channel.write_all(b"hello, this is not JSON\n\n[1, 2]\n42\nnull\n{\n"),
            Kind::Binary => {
                let mut bytes: Vec<u8> = (0..=255).collect();
                bytes.push(b'\n');
                channel.write_all(&bytes)
            }
            Kind::Partial => channel.write_all(br#"{"indicator":"operations","val"#),
            Kind::HugeLine => {
                let mut line = vec![b'x'; self.amount as usize];
                line.push(b'\n');
                channel.write_all(&line)
            }
            Kind::UnknownKeys => channel.write_all(
                br#"{"colour":"green"}
{"ready":true,"colour":"green"}
{"ready":"yes"}
{"phase":"measure"}
{"phase":"measure","edge":"middle"}
{"phase":"measure","edge":"begin","at_ns":-1}
{"indicator":"operations"}
{"indicator":"operations","value":"many"}
{"indicator":7,"value":7}
{}
"#,
            ),
            Kind::Flood => {
                let mut buffered = io::BufWriter::with_capacity(1 << 16, channel);
                for number in 0..self.amount {
                    writeln!(buffered, r#"{{"indicator":"flood","value":{number}}}"#)?;
                }
                buffered.flush()
            }
        }
    }
}
