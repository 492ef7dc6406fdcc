//! Randomly damaged requests, the same in each run: for any bytes of a client, cut at any places,
//! the server sends the same replies, does not panic, and stores no more than its limits.

use concurve_engines::Start;
use concurve_fuzz::{Draw, Target};
use concurve_server::commands::execute;
use concurve_server::options::ServerArgs;
use concurve_server::request::{Arguments, Flow};
use concurve_server::resp::parser::{Limits, Parser};
use concurve_server::session::Session;
use concurve_server::source::Source;
use concurve_server::state::SharedState;

const CASES: u64 = 20_000;
/// Two servers without locks, and their replies.
const MEMORY_MAX: u64 = 16 << 20;

const LIMITS: Limits = Limits {
    arguments_max: 16,
    bytes_max: 512,
};

/// Longest piece that a read hands over.
const PIECE_MAX: usize = 64;

/// Replies to these do not depend on the time.
const SEEDS: &[&[u8]] = &[
    b"*4\r\n$4\r\nLOCK\r\n$1\r\nT\r\n$4\r\nAB@@\r\n$1\r\nE\r\n",
    b"*6\r\n$4\r\nLOCK\r\n$1\r\nT\r\n$2\r\nAB\r\n$1\r\nO\r\n$5\r\nSCOPE\r\n$1\r\n3\r\n",
    b"*4\r\n$4\r\nLOCK\r\n$1\r\nT\r\n$2\r\nAB\r\n$1\r\nR\r\n",
    b"*4\r\n$6\r\nUNLOCK\r\n$1\r\nT\r\n$4\r\nAB@@\r\n$1\r\nE\r\n",
    b"LOCK T ABCD S\r\nUNLOCK T ABCD S\r\n",
    b"*1\r\n$9\r\nUNLOCKALL\r\n*3\r\n$5\r\nOWNER\r\n$1\r\nx\r\n$6\r\nUPDATE\r\n",
    b"*5\r\n$5\r\nLOCKS\r\n$6\r\nCURSOR\r\n$1\r\n0\r\n$5\r\nCOUNT\r\n$2\r\n10\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*4\r\n$5\r\nDELEX\r\n$1\r\nk\r\n$4\r\nIFEQ\r\n$1\r\nv\r\n",
    b"*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nv\r\n",
    b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    b"*0\r\n\r\n*1\r\n$4\r\nQUIT\r\n",
];

/// Pieces that parsers often handle wrongly.
const NASTY: &[&[u8]] = &[
    b"\r\n",
    b"\r",
    b"\n",
    b"*",
    b"$",
    b"$-1\r\n",
    b"*-1\r\n",
    b"0",
    b"9999999999",
    b"99999999999",
    b"4294967296",
    b"18446744073709551616",
    b"+OK\r\n",
    b"\0",
    b"\xff",
    b"@",
    b" ",
    b"\"",
];

/// Requests one after the other.
fn corpus() -> Vec<Vec<u8>> {
    let alone = SEEDS.iter().map(|it| it.to_vec());
    let pairs = SEEDS.iter().zip(SEEDS.iter().skip(1));
    let pairs = pairs.map(|(one, other)| [*one, *other, *one].concat());
    alone.chain(pairs).collect()
}

/// A connection without its socket.
struct Connection {
    state: SharedState,
    session: Session,
    parser: Parser,
    input: Vec<u8>,
    replies: Vec<u8>,
    open: bool,
}

impl Connection {
    fn new() -> Self {
        let options = <ServerArgs as clap::Parser>::parse_from(["concurve-server"]);
        let options = options.options().expect("sound options");
        let state = SharedState::open(options, 0, Start { generation: 1 }).expect("no file");
        Self {
            session: Session::new(1, 0, Source::UNKNOWN, &state.services),
            state,
            parser: Parser::default(),
            input: Vec::new(),
            replies: Vec::new(),
            open: true,
        }
    }

    /// Executes what is complete with this piece.
    fn receive(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        while self.open {
            match self.parser.parse(&self.input, LIMITS) {
                Ok(Some(length)) => self.execute(length),
                Ok(None) => break,
                Err(error) => {
                    self.replies.extend_from_slice(error.to_string().as_bytes());
                    self.open = false;
                }
            }
        }
        let kept = if self.open { self.input.len() } else { 0 };
        assert!(
            kept <= LIMITS.bytes_max,
            "{kept} bytes of an incomplete request"
        );
    }

    fn execute(&mut self, length: usize) {
        let arguments = Arguments {
            bytes: &self.input[..length],
            spans: self.parser.spans(),
        };
        let before = self.replies.len();
        let flow = execute(
            &self.state,
            0,
            &mut self.session,
            arguments,
            &mut self.replies,
        );
        assert!(self.replies.len() - before < 64 * 1024);
        self.open = flow != Flow::Close;
        self.session.locks.waits_until = None; // requests do not wait, because the test has no clock
        self.input.drain(..length);
    }
}

#[test]
fn damaged_requests_are_answered_alike_however_they_are_cut() {
    let corpus = corpus();
    Target::new(env!("CARGO_PKG_NAME"), "damaged_requests", &corpus)
        .words(NASTY)
        .bytes_max(2048)
        .cases(CASES)
        .memory_max(MEMORY_MAX)
        .run(are_answered_alike);
}

fn are_answered_alike(text: &[u8], draw: &mut Draw) {
    let mut whole = Connection::new();
    text.chunks(LIMITS.bytes_max / 2)
        .for_each(|it| whole.receive(it));
    let (mut cut, mut rest) = (Connection::new(), text);
    while !rest.is_empty() {
        let length = 1 + draw.below(PIECE_MAX.min(rest.len()));
        let (piece, after) = rest.split_at(length);
        cut.receive(piece);
        rest = after;
    }
    let shown = String::from_utf8_lossy;
    assert_eq!(shown(&cut.replies), shown(&whole.replies));
    assert_eq!(cut.open, whole.open);
    cut.session.close(&cut.state.services);
}
