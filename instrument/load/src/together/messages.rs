//! What loads that search together say to each other: a line of JSON each. What comes from another process
//! is checked before it is used or shown.

use concurve_clock::monotonic_ns;
use serde::{Deserialize, Serialize};

use crate::counts::window::WindowCounts;
use crate::plan::{End, Pace, RATE_MAX, RATE_MIN, Task};

/// Of the leader, in this order; those from `Clock` on as often as it needs them.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromLeader {
    /// The first word: a number that was never used before.
    Challenge {
        version: String,
        nonce: String,
    },
    /// The leader knows the token, too.
    Welcome {
        proof: String,
    },
    Refused {
        why: String,
    },
    /// Connect the sessions, as the load with this number, from 1 on; its first session has this number
    /// among those of all loads.
    Connect {
        number: u64,
        first_session: u64,
    },
    /// What does your clock say?
    Clock,
    Begin(Task),
    /// The search is over.
    End(Share),
}

/// Of a follower: an answer to each of those.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromFollower {
    Join {
        version: String,
        /// The name of its role in a trial.
        role: Option<String>,
        sessions: u64,
        /// The names of the kinds of its transactions.
        kinds: Vec<String>,
        nonce: String,
        proof: String,
    },
    Connected,
    /// Its CLOCK_MONOTONIC.
    Clock {
        now_ns: u64,
    },
    Ended(Box<TaskCounts>),
    /// Who had the CPUs of its machine, if they were busy.
    Left {
        machine_busy: Option<String>,
    },
    /// It ends for this reason.
    Failed {
        why: String,
    },
}

/// The counts of a load in one task.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskCounts {
    pub window: WindowCounts,
    /// How long after the begin of the task it heard of it; 0 if that was before.
    pub late_ns: u64,
}

/// What a load sent in the windows of a search, as the leader counted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    pub windows: u64,
    pub requests: u64,
    /// How much of that was bad by the objective with the most, in windows without overload; `None` without
    /// any.
    pub bad_share: Option<f64>,
}

/// Larger counts are none of a window.
const COUNT_MAX: u64 = 1 << 48;
/// So many kinds of errors, and so many reasons, at most.
const REASONS_MAX: usize = 10_000;
/// A task begins and ends within this time of now.
const TASK_NS_MAX: u64 = 7 * 24 * 3600 * 1_000_000_000;
const SESSIONS_MAX: u64 = 1_000_000_000;
const TEXT_CHARS_MAX: usize = 200;

impl WindowCounts {
    /// Whether a load with so many sessions can have counted this.
    pub fn is_sound(&self, sessions: u64) -> bool {
        let ended = &self.ended;
        let texts = ended.errors.len().max(self.lost.len());
        let numbers = ended.errors.values().chain(self.lost.values()).copied();
        let counts = [
            ended.ok,
            ended.refused,
            self.due,
            self.skipped,
            self.acknowledged,
        ];
        if texts > REASONS_MAX || numbers.chain(counts).any(|it| it > COUNT_MAX / 100_000) {
            return false;
        }
        let histograms = [&ended.latency_ns, &self.ages.0];
        let answered = ended.latency_ns.len();
        histograms.into_iter().all(|it| it.len() <= COUNT_MAX)
            && (ended.ok + ended.refused..=ended.ended()).contains(&answered)
            && self.lost.values().sum::<u64>() <= sessions
            && (0.0..=1e6).contains(&self.busiest_share)
            && self.last_ns <= TASK_NS_MAX
    }
}

impl Task {
    /// Whether it can be a task of a search for a load with so many sessions.
    pub fn is_sound(&self, sessions: u64) -> bool {
        let now = monotonic_ns();
        let is_near = |ns: u64| ns.abs_diff(now) <= TASK_NS_MAX;
        let End::After { ns } = self.end else {
            return false;
        };
        let paces = match self.pace {
            Pace::Closed { think_ns } => think_ns <= TASK_NS_MAX,
            Pace::Open {
                rate_per_second, ..
            } => (RATE_MIN / 1e3..=RATE_MAX * 2.0).contains(&rate_per_second),
        };
        let times = [self.ramp_ns, self.warm_up_ns, ns];
        let among = self.among.is_some_and(|it| {
            it.all <= SESSIONS_MAX && it.first <= SESSIONS_MAX && it.first + sessions <= it.all
        });
        paces
            && among
            && ns > 0
            && times.iter().all(|it| *it <= TASK_NS_MAX)
            && is_near(self.begin_ns)
            && self.interval_ns.is_none()
    }
}

/// The text of another process as it may be shown: a line without control characters, and not too long.
pub fn plain(text: &str) -> String {
    let shown = |it: char| if it.is_control() { '\u{fffd}' } else { it };
    let mut plain: String = text.chars().take(TEXT_CHARS_MAX).map(shown).collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use concurve_fuzz::Target;

    use super::*;
    use crate::counts::tally::Tally;
    use crate::plan::{Among, Spread};
    use crate::workload::Ending;

    fn window() -> WindowCounts {
        let mut tally = Tally::new(1, 2);
        tally.end(0, 0, 1_000, Ending::Ok);
        tally.end(0, 1, 2_000, Ending::Error("ERR".to_owned()));
        tally.lose(0, "connection lost: reset".to_owned());
        tally.lost.insert("reset".to_owned(), 1);
        WindowCounts::of(vec![tally], 0.3)
    }

    #[test]
    fn counts_that_no_load_has_are_known() {
        assert!(window().is_sound(2));
        let broken: [fn(&mut WindowCounts); 8] = [
            |it| it.ended.ok = u64::MAX,
            |it| it.ended.ok = 5,
            |it| it.due = u64::MAX,
            |it| it.lost.values_mut().for_each(|it| *it = 3),
            |it| it.ended.errors.values_mut().for_each(|it| *it = u64::MAX),
            |it| it.busiest_share = f64::NAN,
            |it| it.busiest_share = -5.0,
            |it| it.last_ns = u64::MAX,
        ];
        for (number, break_it) in broken.into_iter().enumerate() {
            let mut counts = window();
            break_it(&mut counts);
            assert!(!counts.is_sound(2), "{number}");
        }
    }

    #[test]
    fn tasks_that_no_search_has_are_known() {
        let task = |pace| Task {
            begin_ns: monotonic_ns(),
            warm_up_ns: 1_000,
            pace,
            end: End::After { ns: 1_000_000 },
            among: Some(Among { first: 2, all: 4 }),
            ..Task::NONE
        };
        let open = |rate_per_second| Pace::Open {
            rate_per_second,
            spread: Spread::Poisson,
            backlog_max: 10,
        };
        let sound = task(open(100.0));
        assert!(sound.is_sound(2) && !sound.is_sound(3));
        assert!(task(Pace::Closed { think_ns: 0 }).is_sound(2));
        for rate in [-5.0, 0.0, 1e12, 1e300, f64::NAN, f64::INFINITY] {
            assert!(!task(open(rate)).is_sound(2), "{rate}");
        }
        let broken: [fn(&mut Task); 7] = [
            |it| it.end = Task::NONE.end,
            |it| it.end = End::After { ns: 0 },
            |it| it.warm_up_ns = 1 << 63,
            |it| it.begin_ns = u64::MAX,
            |it| it.interval_ns = Some(0),
            |it| it.among = None,
            |it| {
                it.among = Some(Among {
                    first: u64::MAX,
                    all: u64::MAX,
                })
            },
        ];
        for (number, break_it) in broken.into_iter().enumerate() {
            let mut task = sound;
            break_it(&mut task);
            assert!(!task.is_sound(2), "{number}");
        }
    }

    /// The words of our JSON, which are put into each other's places.
    const WORDS: [&[u8]; 10] = [
        b"18446744073709551615",
        b"-1",
        b"1e308",
        b"null",
        b"{}",
        b"[]",
        b"\"\"",
        b"\"Clock\"",
        b":",
        b"\n",
    ];
    /// A line and two histograms, which are some hundred kilobytes each when they are read.
    const FUZZED_MEMORY_MAX: u64 = 8 << 20;

    fn line(message: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(message).unwrap()
    }

    #[test]
    fn hostile_loads_that_follow_do_no_harm() {
        let window = window();
        let corpus = [
            line(&FromFollower::Ended(Box::new(TaskCounts {
                window,
                late_ns: 5,
            }))),
            line(&FromFollower::Clock { now_ns: 77 }),
            line(&FromFollower::Failed {
                why: "no disk".to_owned(),
            }),
            line(&FromFollower::Left {
                machine_busy: Some("hog 50 %".to_owned()),
            }),
        ];
        Target::new(
            env!("CARGO_PKG_NAME"),
            "messages::tests::hostile_loads_that_follow",
            &corpus,
        )
        .words(&WORDS)
        .memory_max(FUZZED_MEMORY_MAX)
        .run(|input, _| match serde_json::from_slice(input) {
            Ok(FromFollower::Ended(counts)) if counts.window.is_sound(2) => {
                // What is taken can be added, and asked for what a search asks.
                let sum = WindowCounts::sum([self::window(), counts.window]);
                assert!(sum.ended.ended() >= sum.ended.answered());
                assert!(sum.unanswered_over(1_000) <= sum.ages.0.len());
            }
            Ok(FromFollower::Failed { why }) => {
                assert!(!plain(&why).contains(char::is_control));
            }
            _ => {}
        });
    }

    #[test]
    fn hostile_loads_that_lead_do_no_harm() {
        let task = Task {
            begin_ns: monotonic_ns(),
            pace: Pace::Open {
                rate_per_second: 1e3,
                spread: Spread::Constant,
                backlog_max: 10,
            },
            end: End::After { ns: 1_000_000 },
            among: Some(Among { first: 2, all: 4 }),
            ..Task::NONE
        };
        let corpus = [
            line(&FromLeader::Begin(task)),
            line(&FromLeader::Connect {
                number: 1,
                first_session: 2,
            }),
            line(&FromLeader::Refused {
                why: "full".to_owned(),
            }),
            line(&FromLeader::End(Share::default())),
        ];
        Target::new(
            env!("CARGO_PKG_NAME"),
            "messages::tests::hostile_loads_that_lead",
            &corpus,
        )
        .words(&WORDS)
        .run(|input, _| match serde_json::from_slice(input) {
            Ok(FromLeader::Begin(task)) if task.is_sound(2) => {
                assert!(task.measure_ns() < task.end_ns());
                let part = task.part(0..2, 2);
                assert!(part.share() > 0.0 && part.sessions.end <= part.all);
            }
            Ok(FromLeader::Refused { why }) => {
                assert!(!plain(&why).contains(char::is_control));
            }
            _ => {}
        });
    }

    #[test]
    fn a_text_of_another_process_is_one_short_line() {
        assert_eq!(plain("load-2"), "load-2");
        assert_eq!(plain("a\x1b[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
        assert_eq!(
            plain(&"x".repeat(60_000)).chars().count(),
            TEXT_CHARS_MAX + 1
        );
    }
}
