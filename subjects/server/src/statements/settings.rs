//! The dials of statements, on the command line.

use std::str::FromStr;

use clap::ValueEnum;
use concurve_latch::Spin;
use concurve_statements::{PAGE_BYTES, StatementOptions};

/// The statement cache, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Caching {
    /// None: every execution compiles
    Off,
    /// One latch around all of it
    Single,
    /// A latch for each part of the hashes
    Striped,
}

/// How a thread waits for the latch of the procedure cache's common part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spinning(pub Spin);

impl FromStr for Spinning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "only" => Ok(Self(Spin::Only)),
            _ => match text.parse() {
                Ok(times) => Ok(Self(Spin::Times(times))),
                Err(_) => Err("it is a number of looks before sleeping, or only".to_owned()),
            },
        }
    }
}

impl std::fmt::Display for Spinning {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0 {
            Spin::Only => out.write_str("only"),
            Spin::Times(times) => write!(out, "{times}"),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Statements")]
#[group(id = "statements")]
pub struct Options {
    /// How plans are found again by their text [default: striped]
    #[arg(long, value_enum)]
    statement_cache: Option<Caching>,

    /// Memory for plans: half of it in the engines' own parts, the rest behind one latch [default:
    /// 16384]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(2..=1 << 22))]
    procedure_cache: Option<u32>,

    /// How often a thread looks again before it sleeps for that latch; only: until it has it
    /// [default: 1000]
    #[arg(long, value_name = "LOOKS|only")]
    spin: Option<Spinning>,
}

/// What they mean.
#[derive(Debug, Clone, Copy)]
pub struct StatementSettings {
    pub caching: Caching,
    pub procedure_cache_kib: u32,
    pub spin: Spinning,
}

impl Options {
    pub fn settings(&self) -> StatementSettings {
        StatementSettings {
            caching: self.statement_cache.unwrap_or(Caching::Striped),
            procedure_cache_kib: self.procedure_cache.unwrap_or(16_384),
            spin: self.spin.unwrap_or(Spinning(Spin::Times(1000))),
        }
    }

    /// One that was given: other services have none of them.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--statement-cache", self.statement_cache.is_some()),
            ("--procedure-cache", self.procedure_cache.is_some()),
            ("--spin", self.spin.is_some()),
        ];
        given.into_iter().find_map(|(name, is)| is.then_some(name))
    }
}

impl StatementSettings {
    /// The same for so many engines.
    pub(super) fn of_engines(&self, engines: usize) -> StatementOptions {
        StatementOptions {
            caching: match self.caching {
                Caching::Off => concurve_statements::Caching::Off,
                Caching::Single => concurve_statements::Caching::Single,
                Caching::Striped => concurve_statements::Caching::Striped,
            },
            pages: (self.procedure_cache_kib as usize) << 10 >> PAGE_BYTES.ilog2(),
            engines,
            spin: self.spin.0,
        }
    }
}
