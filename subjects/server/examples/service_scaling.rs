//! Requests a second of a service on several engines at once, without network, load or clients;
//! prints a number.
//!
//! `service_scaling statements processes 2 1.5` lets two engines in processes of their own execute
//! prepared statements for 1.5 s, each the loop of seven of document 004 on a set of files of its
//! own. `locks` takes and releases locks of one table, of which 10,000 are held. A request runs from its
//! bytes to the bytes of its reply.

use std::hint::spin_loop;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::{Duration, Instant};

use clap::Parser;
use concurve_engines::memory::SharedAllocator;
use concurve_engines::{Engine, Event, Mode, Plan, Service, Start, serve};
use concurve_server::commands::execute;
use concurve_server::options::{ServerArgs, ServerOptions};
use concurve_server::request::{Arguments, Flow};
use concurve_server::resp::parser::{Limits, Parser as RespParser};
use concurve_server::session::Session;
use concurve_server::source::Source;
use concurve_server::state::SharedState;

/// Allocates in the memory that engines share.
#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

const LIMITS: Limits = Limits {
    arguments_max: 16,
    bytes_max: 4096,
};

/// Locks that are held by another session all the time.
const HELD: u64 = 10_000;
const BRANCHES: u64 = 16;
const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 6_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, mode, engines, seconds] = &arguments[..] else {
        panic!("statements or locks, threads or processes, ENGINES, SECONDS");
    };
    let folder = tempfile::tempdir().expect("a folder for the records");
    let mode = match &mode[..] {
        "threads" => Mode::Threads,
        "processes" => Mode::Processes,
        other => panic!("{other} is not threads or processes"),
    };
    let engines = engines.parse().expect("a number of engines");
    let options = match &work[..] {
        "statements" => options_of_statements(folder.path()),
        "locks" => ["concurve-server", "--latching", "record"]
            .map(str::to_owned)
            .to_vec(),
        other => panic!("{other} is not statements or locks"),
    };
    let options = ServerArgs::parse_from(options).options();
    let scaling = Scaling {
        options: options.expect("sound options"),
        engines,
        takes_locks: work == "locks",
        lasts: Duration::from_secs_f64(seconds.parse().expect("a number of seconds")),
    };
    let plan = Plan {
        mode,
        engines,
        memory_bytes: 2 << 30,
        memory_remedy: "raise the number in this file",
        quick_deaths_max: 1,
        stop_within: Duration::from_secs(60),
    };
    match serve(&plan, &scaling) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options_of_statements(folder: &Path) -> Vec<String> {
    let folder = folder.join("data").display().to_string();
    let options = [
        "concurve-server",
        "--service",
        "statements",
        "--durability",
        "none",
        "--latching",
        "record",
        "--statement-cache",
        "striped",
        "--folder",
        &folder,
    ];
    options.map(str::to_owned).to_vec()
}

/// What is asked for on the command line.
struct Scaling {
    options: ServerOptions,
    engines: u32,
    takes_locks: bool,
    lasts: Duration,
}

/// A server without its sockets, and what its engines have done.
struct Shared {
    state: SharedState,
    ready: AtomicU64,
    done: AtomicU64,
    ns: AtomicU64,
}

impl Service for Scaling {
    type Shared = Shared;

    fn open(&self, start: Start) -> Result<Shared, String> {
        let state = SharedState::open(self.options.clone(), 0, start);
        let state = state.map_err(|it| it.to_string())?;
        let mut client = Client::new(0, 0, &state);
        if self.takes_locks {
            for number in 0..HELD {
                client.ask(&[
                    "LOCK",
                    "ORDERS",
                    &format!("{}", 100_000_000_000 + number * 7),
                    "S",
                ]);
            }
            // The session stays open, so its locks stay.
            std::mem::forget(client);
        } else {
            for set in 1..=self.engines {
                client.fill(set);
            }
        }
        Ok(Shared {
            state,
            ready: AtomicU64::new(0),
            done: AtomicU64::new(0),
            ns: AtomicU64::new(0),
        })
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        let number = engine.number as usize - 1;
        let mut client = Client::new(u64::from(engine.number), number, &shared.state);
        if !self.takes_locks {
            client.prepare(engine.number);
        }
        shared.ready.fetch_add(1, AcqRel);
        while shared.ready.load(Acquire) < u64::from(self.engines) {
            spin_loop();
        }
        let (began, mut done) = (Instant::now(), 0_u64);
        while began.elapsed() < self.lasts {
            for _ in 0..16 {
                match self.takes_locks {
                    true => client.lock_and_unlock(),
                    false => client.run_loop(),
                }
            }
            done += 16;
        }
        shared.done.fetch_add(done, Relaxed);
        shared
            .ns
            .fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        let seconds = shared.ns.into_inner() as f64 / 1e9 / f64::from(self.engines);
        println!("{}", shared.done.into_inner() as f64 / seconds);
        shared.state.services.close().map_err(|it| it.to_string())
    }

    fn on_event(&self, event: &Event) {
        assert_eq!(*event, Event::Ready { generation: 1 });
    }
}

/// A connection's session without the connection.
struct Client<'a> {
    state: &'a SharedState,
    engine: usize,
    session: Session,
    parser: RespParser,
    request: Vec<u8>,
    reply: Vec<u8>,
    draw: Draw,
    rows: u64,
}

/// SplitMix64: draws that are the same on every machine.
struct Draw(u64);

impl Draw {
    /// From 1 to `most`.
    fn upto(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most + 1
    }
}

impl<'a> Client<'a> {
    fn new(id: u64, engine: usize, state: &'a SharedState) -> Self {
        Self {
            state,
            engine,
            session: Session::new(id, engine, Source::UNKNOWN, &state.services),
            parser: RespParser::default(),
            request: Vec::new(),
            reply: Vec::new(),
            draw: Draw(id),
            rows: 0,
        }
    }

    /// Executes a command as if a client had sent it.
    fn ask(&mut self, words: &[&str]) {
        self.request.clear();
        self.put(b'*', words.len());
        for word in words {
            self.put(b'$', word.len());
            self.request.extend_from_slice(word.as_bytes());
            self.request.extend_from_slice(b"\r\n");
        }
        let length = self.parser.parse(&self.request, LIMITS).expect("sound");
        assert_eq!(length, Some(self.request.len()));
        loop {
            let arguments = Arguments {
                bytes: &self.request,
                spans: self.parser.spans(),
            };
            self.reply.clear();
            let session = &mut self.session;
            let flow = execute(self.state, self.engine, session, arguments, &mut self.reply);
            let said = String::from_utf8_lossy(&self.reply);
            assert!(!said.starts_with('-'), "{words:?}: {said}");
            match flow {
                Flow::Done => return,
                flow if flow.is_again() => std::thread::yield_now(),
                flow => panic!("{words:?}: {flow:?}"),
            }
        }
    }

    fn put(&mut self, kind: u8, count: usize) {
        self.request.push(kind);
        let mut digits = itoa::Buffer::new();
        self.request
            .extend_from_slice(digits.format(count).as_bytes());
        self.request.extend_from_slice(b"\r\n");
    }

    fn lock_and_unlock(&mut self) {
        let mut digits = itoa::Buffer::new();
        // As many digits each time.
        let argument = digits.format(100_000_000_000 + self.draw.upto(HELD * 7));
        self.ask(&["LOCK", "ORDERS", argument, "S"]);
        self.ask(&["UNLOCK", "ORDERS", argument, "S"]);
    }

    /// Makes the files of a set: concurve-load's, filled alike.
    fn fill(&mut self, set: u32) {
        let filled = [
            ("branches", "bid bbalance BYTES 100", 1),
            ("tellers", "tid bbalance BYTES 100", TELLERS),
            ("accounts", "aid abalance BYTES 100", ACCOUNTS),
        ];
        for (name, fields, each) in filled {
            self.ask_line(&format!("CREATE {name}_{set} {fields}"));
            let last = each * BRANCHES;
            self.ask_line(&format!("FILL {name}_{set} 1 {last} 0"));
        }
        self.ask_line(&format!("CREATE history_{set} row tid bid aid delta time"));
    }

    fn ask_line(&mut self, line: &str) {
        self.ask(&line.split(' ').collect::<Vec<_>>());
    }

    fn prepare(&mut self, set: u32) {
        let statements = [
            format!("GET accounts_{set} abalance KEY ?"),
            format!("GET tellers_{set} bbalance KEY ?"),
            format!("GET branches_{set} bbalance KEY ?"),
            format!("ADD accounts_{set} abalance ? KEY ?"),
            format!("INSERT history_{set} ? ? ? ? ? ?"),
        ];
        for (at, text) in statements.iter().enumerate() {
            self.ask(&["PREPARE", &format!("s{at}"), text]);
        }
    }

    fn run_loop(&mut self) {
        self.rows += 1;
        let (bid, tid, aid) = (BRANCHES, BRANCHES * TELLERS, BRANCHES * ACCOUNTS);
        let numbers = [
            self.rows,
            self.draw.upto(bid),
            self.draw.upto(tid),
            self.draw.upto(aid),
        ];
        // Digits on the stack: the heap is the service's.
        let mut digits = numbers.map(|_| itoa::Buffer::new());
        let [row, bid, tid, aid] = &mut digits;
        let row = row.format(numbers[0]);
        let (bid, tid) = (bid.format(numbers[1]), tid.format(numbers[2]));
        let aid = aid.format(numbers[3]);
        self.ask(&["EXECUTE", "s0", aid]);
        self.ask(&["EXECUTE", "s1", tid]);
        self.ask(&["EXECUTE", "s2", bid]);
        self.ask(&["BEGIN"]);
        self.ask(&["EXECUTE", "s3", "7", aid]);
        self.ask(&["EXECUTE", "s4", row, tid, bid, aid, "7", "0"]);
        self.ask(&["END"]);
    }
}
