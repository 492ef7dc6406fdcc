//! The cost of a lock in memory and in time, without the network; prints one JSON object.
//!
//! `lock_costs memory 5000000` holds so many locks and reads the resident memory.
//! `lock_costs time 1000000 10000 9` takes and releases locks in tables of different size, in nine
//! interleaved rounds: 1,000 locks, a million, and a million of which 10,000 are generic, in few
//! patterns of wildcards and in many. A request runs from its bytes to the bytes of its reply.

use std::fmt::Write;

use clap::Parser;
use concurve_engines::Start;
use concurve_server::commands::execute;
use concurve_server::options::ServerArgs;
use concurve_server::request::{Arguments, Flow};
use concurve_server::resp::parser::{Limits, Parser as RespParser};
use concurve_server::session::Session;
use concurve_server::source::Source;
use concurve_server::state::SharedState;
use nix::sys::time::TimeValLike;
use nix::time::ClockId;

const LIMITS: Limits = Limits {
    arguments_max: 16,
    bytes_max: 4096,
};

/// Number of requests that are timed together, and number of such groups in a round.
const GROUP: usize = 2000;
const GROUPS: usize = 10;

/// Number of owners of the locks.
const OWNERS: u64 = 50;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> u64 {
        let text = arguments.get(at).map_or("", String::as_str);
        text.parse().expect("a number; see the head of this file")
    };
    match arguments.first().map(String::as_str) {
        Some("memory") => memory(number(1)),
        Some("time") => time(number(1), number(2), number(3)),
        _ => panic!("memory LOCKS, or time LOCKS GENERIC ROUNDS"),
    }
}

/// A server without its threads and sockets.
struct Table {
    state: SharedState,
    owners: Vec<Session>,
    parser: RespParser,
    request: Vec<u8>,
    reply: Vec<u8>,
    draw: Draw,
    /// Exact locks that it holds.
    exact: u64,
}

/// SplitMix64: draws that are the same on every machine.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Table {
    fn new() -> Self {
        let options = ServerArgs::parse_from(["concurve-server", "--capacity", "100000000"]);
        let options = options.options().expect("sound options");
        let state =
            SharedState::open(options, 0, Start { generation: 1 }).expect("no file to open");
        let owner = |id| Session::new(id, 0, Source::UNKNOWN, &state.services);
        let owners = (0..OWNERS).map(owner).collect();
        Self {
            state,
            owners,
            parser: RespParser::default(),
            request: Vec::new(),
            reply: Vec::new(),
            draw: Draw(7),
            exact: 0,
        }
    }

    /// `LOCK` or `UNLOCK` of an argument, as if a client had sent it.
    fn ask(&mut self, owner: u64, command: &str, argument: &str) {
        use std::io::Write;
        self.request.clear();
        let (name, size) = (command.len(), argument.len());
        let request = format_args!(
            "*4\r\n${name}\r\n{command}\r\n$6\r\nORDERS\r\n${size}\r\n{argument}\r\n$1\r\nS\r\n"
        );
        self.request.write_fmt(request).expect("memory");
        let length = self.parser.parse(&self.request, LIMITS).expect("sound");
        assert_eq!(length, Some(self.request.len()));
        let arguments = Arguments {
            bytes: &self.request,
            spans: self.parser.spans(),
        };
        self.reply.clear();
        let session = &mut self.owners[owner as usize];
        let flow = execute(&self.state, 0, session, arguments, &mut self.reply);
        let said = String::from_utf8_lossy(&self.reply);
        assert!(flow == Flow::Done && said.starts_with(':'), "{said}");
    }

    /// Takes so many exact locks.
    fn fill(&mut self, locks: u64) {
        let mut argument = String::new();
        for number in 0..locks {
            argument.clear();
            write!(argument, "{:012}", number * 7).expect("memory");
            self.ask(number % OWNERS, "LOCK", &argument);
        }
        self.exact = locks;
    }

    /// Takes so many generic locks more: with wildcards at the end (three patterns), or at three
    /// random positions each (220 patterns).
    fn fill_generic(&mut self, locks: u64, many_patterns: bool) {
        let before = self.state.services.locks.usage.locks().now();
        while self.state.services.locks.usage.locks().now() < before + locks {
            let mut argument = format!("{:012}", self.draw.next() % 7_000_000).into_bytes();
            if many_patterns {
                for _ in 0..3 {
                    let at = (self.draw.next() % 12) as usize;
                    argument[at] = b'@';
                }
            } else {
                let tail = 1 + (self.draw.next() % 3) as usize;
                argument[12 - tail..].fill(b'@');
            }
            let argument = String::from_utf8(argument).expect("ASCII");
            self.ask(self.draw.0 % OWNERS, "LOCK", &argument);
        }
    }

    /// CPU time of a pair of requests in ns, on average over a group of them. One in seven finds
    /// the lock of another owner, however many there are.
    fn pair_ns(&mut self) -> f64 {
        // Drawn and written beforehand: only the server's part is timed.
        let arguments: Vec<String> = (0..GROUP)
            .map(|_| format!("{:012}", self.draw.next() % (self.exact * 7)))
            .collect();
        let begin_ns = cpu_ns();
        for argument in &arguments {
            self.ask(0, "LOCK", argument);
            self.ask(0, "UNLOCK", argument);
        }
        (cpu_ns() - begin_ns) as f64 / GROUP as f64
    }
}

/// CPU time of this thread: other work on the machine is not in it, and nothing here waits.
fn cpu_ns() -> i64 {
    let now = ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("a clock");
    now.num_nanoseconds()
}

fn memory(locks: u64) {
    let before = resident_bytes();
    let mut table = Table::new();
    table.fill(locks);
    assert_eq!(table.state.services.locks.usage.locks().now(), locks);
    let bytes = resident_bytes() - before;
    println!("{{\"locks\": {locks}, \"bytes\": {bytes}}}");
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("VmRSS in kB") * 1024
}

fn time(locks: u64, generic: u64, rounds: u64) {
    let mut tables = [
        ("small", Table::new()),
        ("large", Table::new()),
        ("few_patterns", Table::new()),
        ("many_patterns", Table::new()),
    ];
    tables[0].1.fill(1000);
    tables[1].1.fill(locks);
    for (at, many) in [(2, false), (3, true)] {
        tables[at].1.fill(locks - generic);
        tables[at].1.fill_generic(generic, many);
    }
    let mut found = vec![Vec::new(); tables.len()];
    for round in 0..rounds as usize {
        for step in 0..tables.len() {
            let at = (round + step) % tables.len();
            tables[at].1.pair_ns(); // warms up the caches
            let groups = (0..GROUPS).map(|_| tables[at].1.pair_ns());
            found[at].push(groups.fold(f64::INFINITY, f64::min));
        }
    }
    let series: Vec<String> = tables
        .iter()
        .zip(&found)
        .map(|((name, _), series)| format!("\"{name}\": {series:?}"))
        .collect();
    println!("{{{}}}", series.join(", "));
}
