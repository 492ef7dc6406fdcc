//! The command line of a load.

mod plan;

use std::path::PathBuf;

use clap::{ArgGroup, Parser};

use crate::dataset::DatasetOptions;
use crate::plan::{AskedRate, Objective, Spread};
use crate::units::{parse_positive_time, parse_share, parse_time};
use crate::workload::WorkloadOptions;

/// Put load on a server or an embedded engine, and measure its throughput and latencies
#[derive(Debug, Parser)]
#[command(name = "concurve-load", version, max_term_width = 100)]
#[command(group(ArgGroup::new("together").args(["lead", "follow"])))]
#[command(after_help = "Examples:
  concurve-load redis://127.0.0.1:6379 --sessions 50 --duration 10s
  concurve-load redis://127.0.0.1:6379 --workload set-nx-del --sessions 100 --transactions 10000
  concurve-load redis://127.0.0.1:6379 --mix get=80,set=20 --rate 20000 --arrivals poisson
  concurve-load redis://127.0.0.1:6379 --rate 50% --duration 10s
  concurve-load redis://127.0.0.1:6379 --slo p99=2ms,errors=0.1%
  concurve-load redis://127.0.0.1:6379 --slo p99=2ms --rate 20000
  concurve-load redis://10.0.0.5 --slo p99=2ms --lead 1 --listen 10.0.0.6:7100 --token-from TOKEN
  concurve-load redis://10.0.0.5 --follow 10.0.0.6:7100 --token-from TOKEN
  concurve-load redis://127.0.0.1:6379 --command 'SET {key} {value} PX 5000' --keys zipf:100000:0.99
  concurve-load postgresql://me@127.0.0.1/bank --workload tpcb-strict --scale 10 --init --verify

Exit codes: 0 done, or objectives met; 1 failed; 2 wrong options; 4 more unanswered than
--unanswered-max; 10 objectives not met; 11 undecided whether they are met; 130 or 143 stopped by a
signal; 141 the reader of its output has gone. As a role of a study it ends with 0 instead of 10 and
11: the verdict is in the record.")]
pub struct Arguments {
    /// redis://, postgresql:// or mysql://USER@HOST:PORT/DATABASE, records:// or
    /// statements://HOST:PORT, sqlite:FILE, lmdb:FOLDER, records:FOLDER; or HOST:PORT, or the path
    /// of a Unix socket, for Redis
    server: String,
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Number of sessions, each with a connection of its own
    #[arg(long, visible_alias = "clients", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    sessions: u64,
    /// Client threads that share the sessions, at most one a session [default: 1; an embedded
    /// engine has one for each session]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    threads: Option<u64>,
    /// Run each session in a process of its own
    #[arg(long, conflicts_with = "threads")]
    processes: bool,
    #[arg(long, hide = true, requires = "processes")]
    pub part: Option<u64>,
    #[arg(long, hide = true, requires = "part", default_value_t = 0)]
    first_session: u64,
    #[arg(long, hide = true, requires = "part")]
    run_id: Option<String>,
    /// Transactions that each session has in flight at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pipeline: u32,
    /// End after this number of transactions, over all sessions; with --duration after that time at the latest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,
    /// End after this time [default: 10s; with --slo 60s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    duration: Option<u64>,
    /// Put on the same load for this time before, without measuring it
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    warm_up: u64,
    /// Begin the sessions one after the other over this time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    ramp: u64,
    /// Think time: pause of a session between a reply and its next request
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time, conflicts_with = "rate")]
    think: u64,
    /// Poll the sockets for this time, 1s at most, before a client thread sleeps: a lone session then
    /// waits for no wake-up, and the thread uses a CPU
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    spin: u64,
    /// Open loop: transactions a second over all sessions, independent of the replies. 50% is half of
    /// the greatest rate, which a closed loop of the same sessions shows first, for a quarter of
    /// --duration, 1s at least
    #[arg(long, value_name = "R", conflicts_with_all = ["pipeline", "ramp"])]
    rate: Option<AskedRate>,
    /// Find the highest rate that meets objectives such as p99=2ms,errors=0.1%; with --rate, say
    /// whether that rate meets them. Exit codes: 0 found or met, 10 not met, 11 undecided
    #[arg(long, value_name = "OBJECTIVES", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["transactions", "pipeline", "ramp", "think", "spin", "hdr", "log_requests", "unanswered_max"])]
    slo: Vec<Objective>,
    /// Lead so many other loads in the search: each sends its part of every rate, by its sessions, and all
    /// are judged together. Start them with --follow
    #[arg(long, value_name = "N", requires = "slo", requires = "listen")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1023))]
    lead: Option<u64>,
    /// Where the loads that follow find this one
    #[arg(long, value_name = "HOST:PORT", requires = "lead")]
    listen: Option<String>,
    /// Take part in the search of the load that leads there. The options of the workload and of the
    /// sessions are this load's own; rates, objectives, times and data are the leader's
    #[arg(long, value_name = "HOST:PORT")]
    #[arg(conflicts_with_all = ["lead", "rate", "transactions", "pipeline", "ramp", "think", "spin", "hdr", "log_requests", "unanswered_max", "mark_phase", "init_only", "verify_only"])]
    follow: Option<String>,
    /// With --lead or --follow: name of the environment variable with a secret that all these loads have
    #[arg(long, value_name = "VARIABLE", requires = "together")]
    token_from: Option<String>,
    /// Open loop: distribution of the times between arrivals [default: constant; with --slo
    /// poisson]
    #[arg(long, value_enum)]
    arrivals: Option<Spread>,
    /// Open loop: maximum number of due transactions that wait for a free session
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    backlog: usize,
    /// Name of the environment variable with the password
    #[arg(long, value_name = "VARIABLE")]
    password_from: Option<String>,
    /// Time limit for each session to connect and log in
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_time)]
    connect_timeout: u64,
    /// Seed of all random numbers; each role of a trial, and each load of a search, has its own of it
    #[arg(long, value_name = "N", default_value_t = 1, overrides_with = "seed")]
    seed: u64,
    /// Send concurve-server the begin and the end of the measured phase, so that it reports its
    /// counters for that time
    #[arg(long, conflicts_with = "slo")]
    mark_phase: bool,
    /// Write the latencies of each second to an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Write the times of each request to a CSV file: when it was due, sent and answered, in ns of
    /// CLOCK_MONOTONIC
    #[arg(long, value_name = "FILE")]
    pub log_requests: Option<PathBuf>,
    /// Exit with code 4 if a larger share of what was due is not answered, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub unanswered_max: Option<f64>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "Data of databases")]
    pub dataset: DatasetOptions,
}
