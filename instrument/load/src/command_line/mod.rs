//! The command line of a load.

mod plan;

use std::path::PathBuf;

use clap::Parser;

use crate::dataset::DatasetOptions;
use crate::plan::{Objective, Spread};
use crate::units::{parse_positive_time, parse_time};
use crate::workload::WorkloadOptions;

/// Put load on a server, and say how it answered
#[derive(Debug, Parser)]
#[command(name = "concurve-load", version, max_term_width = 100)]
#[command(after_help = "Examples:
  concurve-load redis://127.0.0.1:6379 --sessions 50 --duration 10s
  concurve-load redis://127.0.0.1:6379 --workload set-nx-del --sessions 100 --transactions 10000
  concurve-load redis://127.0.0.1:6379 --mix get=80,set=20 --rate 20000 --arrivals poisson
  concurve-load redis://127.0.0.1:6379 --slo p99=2ms,errors=0.1%
  concurve-load redis://127.0.0.1:6379 --command 'SET {key} {value} PX 5000' --keys zipf:100000:0.99
  concurve-load postgresql://me@127.0.0.1/bank --workload tpcb-strict --scale 10 --init --verify")]
pub struct Arguments {
    /// redis://, postgresql:// or mysql://USER@HOST:PORT/DATABASE, records:// or
    /// statements://HOST:PORT, sqlite:FILE, lmdb:FOLDER, records:FOLDER; or HOST:PORT, or the path of a Unix socket, for Redis
    server: String,
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    sessions: u64,
    /// Client threads that share them; as many as sessions for a thread each [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    threads: Option<u64>,
    /// A process for each session
    #[arg(long, conflicts_with = "threads")]
    processes: bool,
    #[arg(long, hide = true, requires = "processes")]
    pub part: Option<u64>,
    /// Transactions that each session has under way at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pipeline: u32,
    /// End after so many transactions, over all sessions
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,
    /// End after so long [default: 10s; with --slo 60s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    duration: Option<u64>,
    /// The same load before, which does not count
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    warm_up: u64,
    /// Begin the sessions one after the other over so long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    ramp: u64,
    /// Pause between an answer and the session's next request
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time, conflicts_with = "rate")]
    think: u64,
    /// Open loop: transactions a second over all sessions, whatever the answers
    #[arg(long, value_name = "R", conflicts_with_all = ["pipeline", "ramp"])]
    rate: Option<f64>,
    /// Find the greatest rate that keeps objectives: p99=2ms,errors=0.1%
    #[arg(long, value_name = "OBJECTIVES", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["rate", "transactions", "pipeline", "ramp", "think", "hdr"])]
    slo: Vec<Objective>,
    /// How the times of an open loop are spread [default: constant; with --slo poisson]
    #[arg(long, value_enum)]
    arrivals: Option<Spread>,
    /// Open loop: due transactions that may wait for a free session
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    backlog: usize,
    /// Where the password is: the name of an environment variable
    #[arg(long, value_name = "VARIABLE")]
    password_from: Option<String>,
    /// For each session to connect and log in
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_time)]
    connect_timeout: u64,
    /// Of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Tell a concurve-server when the measured phase begins and ends, so that it reports its
    /// counters of that time
    #[arg(long, conflicts_with = "slo")]
    mark_phase: bool,
    /// Write the latencies of each second to an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "Data of databases")]
    pub dataset: DatasetOptions,
}
