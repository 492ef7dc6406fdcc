//! A recorded trace: what processes requested of a device, and when, as `blkparse` prints it.
//!
//! ```text
//!   8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]
//! ```
//!
//! Device, CPU, sequence number, seconds, process id, action, direction, first sector `+` sectors,
//! name (blkparse(1), "Output description and formatting"). Only actions `Q` count, with which a
//! process submits a request to the queue; later actions of the recorded scheduler are ignored.
//!
//! Requests arrive at their recorded times, independent of the completion of earlier requests.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::{Actions, Process, Step};
use crate::error::TraceError;
use crate::request::{Direction, Io};
use crate::time::Time;

/// The largest I/O of the kernel: 4 GiB.
const SECTORS_MAX: u64 = 1 << 23;
/// The largest I/O that a process submits: 512 KiB, the largest request.
const PART_SECTORS: u64 = 1024;

/// A request and when it came, in ns since the trace's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Queued {
    at: Time,
    sector: u64,
    sectors: u64,
    direction: Direction,
    sync: bool,
}

/// The processes of a trace, each with its requests, on a volume of so many sectors.
pub fn processes(text: impl BufRead, sectors: u64) -> Result<Vec<Box<dyn Process>>, TraceError> {
    let mut device: Option<String> = None;
    let mut by_process: BTreeMap<u64, Vec<Queued>> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line?;
        let Some((of, pid, queued)) = parse(&line) else {
            continue;
        };
        match &device {
            Some(device) if device != of => {
                return Err(TraceError::Devices(device.clone(), of.to_owned()));
            }
            Some(_) => {}
            None => device = Some(of.to_owned()),
        }
        let sector = queued.sector.saturating_add(queued.sectors);
        if sector > sectors {
            let line = index + 1;
            return Err(TraceError::Beyond {
                line,
                sector,
                sectors,
            });
        }
        by_process.entry(pid).or_default().push(queued);
    }
    let begin = by_process.values().flatten().map(|it| it.at).min();
    let begin = begin.ok_or(TraceError::Empty)?;
    let replayed = by_process
        .into_values()
        .map(|queued| -> Box<dyn Process> { Box::new(Replay::new(queued, begin)) });
    Ok(replayed.collect())
}

/// Device, process and request of a line; `None` if the line is of another kind.
fn parse(line: &str) -> Option<(&str, u64, Queued)> {
    let mut words = line.split_whitespace();
    let device = words.next().filter(|it| it.contains(','))?;
    let _cpu = words.next()?;
    let _sequence = words.next()?;
    let seconds = words.next()?;
    let pid = words.next()?.parse().ok()?;
    let action = words.next()?;
    let kind = words.next()?;
    let sector = words.next()?.parse().ok()?;
    let plus = words.next()?;
    let sectors = words.next()?.parse().ok()?;
    if action != "Q" || plus != "+" || !(1..=SECTORS_MAX).contains(&sectors) {
        return None;
    }
    let direction = match (kind.contains('R'), kind.contains('W')) {
        (true, false) => Direction::Read,
        (false, true) => Direction::Write,
        _ => return None, // a discard, or a flush alone
    };
    let queued = Queued {
        at: nanoseconds(seconds)?,
        sector,
        sectors,
        direction,
        sync: direction == Direction::Read || kind.contains('S'),
    };
    Some((device, pid, queued))
}

/// `0.009507758`, without what a float would lose.
fn nanoseconds(seconds: &str) -> Option<Time> {
    let (whole, part) = seconds.split_once('.')?;
    let part = format!("{part:0<9}");
    let whole: Time = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(part.get(..9)?.parse().ok()?)
}

struct Replay {
    /// The next one is the last.
    left: Vec<Queued>,
    begin: Time,
}

impl Replay {
    fn new(mut queued: Vec<Queued>, begin: Time) -> Self {
        // blkparse merges the CPUs' buffers, which may leave neighbours in each other's places.
        queued.sort_by_key(|it| it.at);
        queued.reverse();
        Self {
            left: queued,
            begin,
        }
    }
}

impl Process for Replay {
    fn step(&mut self, now: Time, actions: &mut Actions) -> Step {
        while let Some(next) = self.left.last() {
            let at = next.at - self.begin;
            if at > now {
                return Step::Sleep(at - now);
            }
            ask(next, actions);
            self.left.pop();
        }
        Step::End
    }
}

fn ask(queued: &Queued, actions: &mut Actions) {
    let end = queued.sector + queued.sectors;
    let mut sector = queued.sector;
    while sector < end {
        let sectors = PART_SECTORS.min(end - sector);
        actions.ios.push(Io {
            sector,
            sectors: sectors as u32,
            direction: queued.direction,
            sync: queued.sync,
        });
        sector += sectors;
    }
}

#[cfg(test)]
mod tests {
    use concurve_fuzz::Target;

    use super::*;

    /// Two processes, one of whose writes is not sync; and lines that are no requests.
    const TRACE: &str = "\
  8,0    3        1     0.500000000   697  Q  WS 1000 + 8 [kjournald]
  8,0    3        2     0.500001829   697  G  WS 1000 + 8 [kjournald]
  8,0    3        5     0.500009000   697  I  WS 1000 + 8 [kjournald]
  8,0    1        1     0.502000001   812  Q   R 5000 + 2048 [cat]
  8,0    1        2     0.503000000   812  Q   W 9000 + 16 [cat]
  8,0    1        3     0.503000000   812  Q   N 0 + 0 [cat]
  8,0    1        4     0.504000000   812  Q   D 9000 + 64 [fstrim]
CPU1 (8,0):
 Reads Queued:           1,     1024KiB\t Writes Queued:           2,       12KiB
";

    #[test]
    fn requests_come_when_and_as_they_were_recorded() {
        let mut processes = processes(TRACE.as_bytes(), 100_000).unwrap();
        assert_eq!(processes.len(), 2);
        let mut actions = Actions::default();
        assert_eq!(processes[0].step(0, &mut actions), Step::End);
        assert_eq!(actions.ios, [Io::write(1000, 8, true)]);

        let mut actions = Actions::default();
        assert_eq!(processes[1].step(0, &mut actions), Step::Sleep(2_000_001));
        assert_eq!(actions.ios, []);
        assert_eq!(
            processes[1].step(2_000_001, &mut actions),
            Step::Sleep(999_999)
        );
        assert_eq!(
            actions.ios,
            [Io::read(5000, 1024), Io::read(6024, 1024)],
            "more than a request takes is asked for in parts"
        );
        let mut actions = Actions::default();
        assert_eq!(processes[1].step(3_000_000, &mut actions), Step::End);
        assert_eq!(actions.ios, [Io::write(9000, 16, false)]);
    }

    fn said(text: &str) -> String {
        match processes(text.as_bytes(), 100_000) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_reported() {
        assert!(said("").contains("no line is a request"));
        assert!(said("8,0 1 1 nonsense").contains("no line is a request"));
        let two = "8,0 0 1 0.1 7 Q R 8 + 8 [a]\n8,16 0 2 0.2 7 Q R 8 + 8 [a]\n";
        assert!(said(two).contains("on 8,0 and on 8,16"));
        let far = "8,0 0 1 0.1 7 Q R 99999 + 8 [a]\n";
        assert!(said(far).contains("line 1: sector 100007 is beyond the 100000"));
    }

    #[test]
    fn any_text_is_a_trace_or_refused() {
        let corpus = [
            TRACE.as_bytes().to_vec(),
            b"8,0 0 1 0.1 7 Q R 99999 + 8 [a]\n".to_vec(),
        ];
        let words: [&[u8]; 6] = [b"8,0", b"Q", b"RW", b"+", b".", b"18446744073709551615"];
        Target::new(
            env!("CARGO_PKG_NAME"),
            "workload::trace::tests::any_text",
            &corpus,
        )
        .words(&words)
        .run(|text, _| {
            // Far away, so that most of what is asked for is done.
            for mut process in processes(text, 1 << 40).into_iter().flatten() {
                for time in [0, 1 << 30, Time::MAX] {
                    let mut actions = Actions::default();
                    process.step(time, &mut actions);
                    assert!(actions.ios.iter().all(|it| it.sectors > 0));
                }
            }
        });
    }

    #[test]
    fn seconds_keep_their_nanoseconds() {
        assert_eq!(nanoseconds("12.000000007"), Some(12_000_000_007));
        assert_eq!(nanoseconds("0.5"), Some(500_000_000));
        assert_eq!(nanoseconds("7"), None);
    }
}
