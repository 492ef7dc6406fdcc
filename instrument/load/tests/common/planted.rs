//! Planted servers: each treats its requests by a rule that the test knows, and logs when they came
//! and when it answered, on the clock of the load generator.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use concurve_clock::monotonic_ns;

use super::{Server, request};

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is answered after this time.
    AnswerAfter(Duration),
    /// It is never answered; the connection stays open.
    Never,
}

/// A rule: the fate of the request with this number, counted over all connections, that came at this
/// time.
pub type Rule = fn(number: u64, at_ns: u64) -> Fate;

/// A request in the log of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// The session that sent it, by its key: the load has `--keys session`.
    pub session: u64,
    pub arrived_ns: u64,
    pub answered_ns: Option<u64>,
}

pub struct Planted {
    pub server: Server,
    log: Arc<Mutex<Vec<Served>>>,
}

impl Planted {
    pub fn start(rule: Rule) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let own = log.clone();
        let server = Server::start_with(move |stream, counter| {
            stream.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(stream);
            while let Some(words) = request(&mut reader) {
                let arrived_ns = monotonic_ns();
                let number = counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                serve(stream, &words, rule(number, arrived_ns), arrived_ns, &own);
            }
        });
        Self { server, log }
    }

    pub fn address(&self) -> &str {
        &self.server.address
    }

    /// What the server has logged, by time of arrival.
    pub fn log(&self) -> Vec<Served> {
        let mut log = self.log.lock().unwrap().clone();
        log.sort_by_key(|it| it.arrived_ns);
        log
    }

    pub fn answered(&self) -> usize {
        let log = self.log.lock().unwrap();
        log.iter().filter(|it| it.answered_ns.is_some()).count()
    }
}

fn serve(
    mut stream: &TcpStream,
    words: &[String],
    fate: Fate,
    arrived_ns: u64,
    log: &Mutex<Vec<Served>>,
) {
    let session = words[1].trim_start_matches(|it: char| !it.is_ascii_digit());
    let mut served = Served {
        session: session.parse().unwrap(),
        arrived_ns,
        answered_ns: None,
    };
    if let Fate::AnswerAfter(time) = fate {
        thread::sleep(time);
        // Logged before it is sent: the client cannot have seen it earlier.
        served.answered_ns = Some(monotonic_ns());
    }
    log.lock().unwrap().push(served);
    if served.answered_ns.is_some() {
        // The client may have ended.
        let _ = stream.write_all(b"+OK\r\n");
    }
}

const AT_ONCE: Fate = Fate::AnswerAfter(Duration::ZERO);

/// Answers the first 400 requests, then none.
pub fn stops_after_400(number: u64, _: u64) -> Fate {
    match number {
        ..400 => AT_ONCE,
        _ => Fate::Never,
    }
}

/// Answers nothing in the first 200 ms of each second of the clock.
pub fn pauses(_: u64, at_ns: u64) -> Fate {
    let into_second = Duration::from_nanos(at_ns % 1_000_000_000);
    Fate::AnswerAfter(Duration::from_millis(200).saturating_sub(into_second))
}

/// Answers one request in ten; the connections of the others wait for ever.
pub fn answers_one_in_ten(number: u64, _: u64) -> Fate {
    match number % 10 {
        0 => AT_ONCE,
        _ => Fate::Never,
    }
}

pub fn answers_all(_: u64, _: u64) -> Fate {
    AT_ONCE
}
