//! The plan of a run, from the options.

use std::env::VarError;
use std::sync::Arc;

use super::Arguments;
use crate::address::Address;
use crate::admin::AdminAccess;
use crate::called;
use crate::dataset::DatasetInDatabase;
use crate::engine::EmbeddedEngine;
use crate::error::Error;
use crate::plan::{
    AskedPace, AskedRate, End, Goal, Load, Pace, Plan, RATE_MAX, RATE_MIN, RateSearch, Runners,
    ShareOfGreatest, Spread, Target,
};
use crate::protocol::Password;
use crate::together::{Meeting, Token};
use crate::workload::{Prefill, Selection};

/// Of the hash of Fowler, Noll and Vo.
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// More processes than this are refused as a mistake.
const PROCESSES_MAX: u64 = 2000;
const DURATION_NS: u64 = 10_000_000_000;
const SEARCH_NS: u64 = 60_000_000_000;
/// A closed loop that shows the greatest rate takes this fraction of the duration, and no less than this.
const GREATEST_FRACTION: u64 = 4;
const GREATEST_NS_MIN: u64 = 1_000_000_000;
/// The longest time to poll: a thread that never sleeps takes a CPU from the server on a small machine.
const SPIN_NS_MAX: u64 = 1_000_000_000;

impl Arguments {
    /// Checks everything that can be checked before connecting.
    pub fn plan(&self) -> Result<Plan, Error> {
        let mut address = Address::parse(&self.server)?;
        address.set_password(self.password()?)?;
        let run_id = self.run_id.clone().unwrap_or_else(new_run_id);
        let language = address.language();
        let Selection {
            workload,
            dataset,
            prefill,
        } = self.workload.select(language, self.pipeline, &run_id)?;
        if dataset.is_none() && self.dataset.is_any() {
            return Err(Error::Usage(
                "--init, --verify and --ledger are for the named workloads of databases: others have no data of their own".to_owned(),
            ));
        }
        let dataset = dataset.map(|dataset| DatasetInDatabase {
            dataset,
            // Data take as long as they take.
            admin: address.admin(self.connect_timeout, None),
            command: self.naming_the_server(),
        });
        let phase_marking = self.phase_marking(&address)?;
        let prefill = prefill.map(|it| Arc::new(self.prefilling(&address, it, &run_id)));
        let target = address.target(&*workload, self.connect_timeout);
        Ok(Plan {
            workload,
            dataset,
            prefill,
            phase_marking,
            sessions: self.sessions,
            runners: match &target {
                Target::Server(_) => self.runners()?,
                Target::Engine(engine) => self.engine_runners(&**engine)?,
            },
            target,
            pipeline: self.pipeline,
            spin_ns: self.spin_ns()?,
            goal: self.goal()?,
            seed: self.own_seed(),
            first_session: self.first_session,
            run_id,
            logs_requests: self.log_requests.is_some(),
        })
    }

    /// The load that sets each key once, as fast as one session can.
    fn prefilling(&self, address: &Address, prefill: Prefill, run_id: &str) -> Plan {
        let Prefill {
            workload,
            keys,
            pipeline,
        } = prefill;
        let load = Load {
            pace: AskedPace::Given(Pace::Closed { think_ns: 0 }),
            end: End::Transactions {
                number: keys.unwrap_or(self.sessions),
                within_ns: None,
            },
            warm_up_ns: 0,
            ramp_ns: 0,
        };
        Plan {
            target: address.clone().target(&*workload, self.connect_timeout),
            workload,
            dataset: None,
            prefill: None,
            phase_marking: None,
            sessions: 1,
            runners: Runners::Threads(1),
            pipeline,
            spin_ns: 0,
            goal: Goal::Load(load),
            seed: self.seed,
            first_session: 0,
            run_id: run_id.to_owned(),
            logs_requests: false,
        }
    }

    /// The beginning of a command line for the same server. An address has no password.
    fn naming_the_server(&self) -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "@%+=:,./_-".contains(it);
        let server = match self.server.chars().all(is_plain) {
            true => self.server.clone(),
            false => format!("'{}'", self.server.replace('\'', r"'\''")),
        };
        let password = self.password_from.as_ref();
        let password = password.map(|it| format!(" --password-from {it}"));
        format!(
            "{} {server}{}",
            called::program(),
            password.unwrap_or_default()
        )
    }

    /// Access to the server for marking the measured phase, if the phase is to be marked.
    fn phase_marking(&self, address: &Address) -> Result<Option<Arc<dyn AdminAccess>>, Error> {
        if self.mark_phase && !address.may_know_phases() {
            return Err(Error::Usage(
                "--mark-phase is for concurve-server: no other server is asked about the phase"
                    .to_owned(),
            ));
        }
        Ok(self
            .mark_phase
            .then(|| address.admin(self.connect_timeout, Some(self.connect_timeout))))
    }

    fn runners(&self) -> Result<Runners, Error> {
        if self.processes {
            return match self.sessions {
                ..=PROCESSES_MAX => Ok(Runners::Processes),
                many => Err(Error::Usage(format!(
                    "--processes for {many} sessions; at most {PROCESSES_MAX}"
                ))),
            };
        }
        let threads = self.threads.unwrap_or(1).min(self.sessions);
        Ok(Runners::Threads(threads))
    }

    /// What is told where more threads were asked for than there are sessions to share.
    pub fn threads_beyond_sessions(&self) -> Option<String> {
        let asked = self.threads.filter(|threads| *threads > self.sessions)?;
        Some(format!(
            "--threads {asked} for --sessions {}: one thread a session is used",
            self.sessions
        ))
    }

    /// A session of an engine is a thread, or a process.
    fn engine_runners(&self, engine: &dyn EmbeddedEngine) -> Result<Runners, Error> {
        let name = engine.name();
        if self.pipeline > 1 {
            return Err(Error::Usage(format!(
                "--pipeline: a session of {name} does one transaction after the other; more --sessions"
            )));
        }
        if self.spin > 0 {
            return Err(Error::Usage(format!(
                "--spin: a session of {name} has no socket to poll, since it calls the engine; leave it out"
            )));
        }
        if let Some(threads) = self.threads.filter(|it| *it != self.sessions) {
            return Err(Error::Usage(format!(
                "--threads {threads}: each session of {name} is a thread; leave it out, or take --processes"
            )));
        }
        match engine.refuses_processes() {
            Some(why) if self.processes => {
                Err(Error::Usage(format!("--processes for {name}: {why}")))
            }
            _ if self.processes => self.runners(),
            _ => Ok(Runners::Threads(self.sessions)),
        }
    }

    fn spin_ns(&self) -> Result<u64, Error> {
        match self.spin {
            ..=SPIN_NS_MAX => Ok(self.spin),
            _ => Err(Error::Usage(
                "--spin: 1s at most; a client thread that polls for longer hardly ever sleeps"
                    .to_owned(),
            )),
        }
    }

    fn password(&self) -> Result<Option<Password>, Error> {
        let variable = self.password_from.as_deref();
        let password = variable.map(|it| secret("password", it)).transpose()?;
        Ok(password.map(Password::new))
    }

    /// The seed of this process. Loads that run at once, as copies of a role do, must not send the same at
    /// the same times. A worker process has got the seed of its parent.
    fn own_seed(&self) -> u64 {
        let role = match self.part {
            None => concurve_reporter::role().unwrap_or_default(),
            Some(_) => String::new(),
        };
        role.bytes().fold(self.seed, |seed, it| {
            (seed ^ u64::from(it)).wrapping_mul(FNV_PRIME)
        })
    }

    fn goal(&self) -> Result<Goal, Error> {
        if !self.slo.is_empty() {
            return Ok(Goal::Search(RateSearch {
                objectives: self.slo.clone(),
                rate: self.checked_rate()?,
                spread: self.arrivals.unwrap_or(Spread::Poisson),
                backlog_max: self.backlog,
                warm_up_ns: self.warm_up,
                duration_ns: self.duration.unwrap_or(SEARCH_NS),
            }));
        }
        let ns = self.duration.unwrap_or(DURATION_NS);
        Ok(Goal::Load(Load {
            pace: self.pace(ns)?,
            end: match self.transactions {
                Some(number) => End::Transactions {
                    number,
                    within_ns: self.duration,
                },
                None => End::After { ns },
            },
            warm_up_ns: self.warm_up,
            ramp_ns: self.ramp,
        }))
    }

    /// Where this load follows another one, if it does.
    pub fn followed(&self) -> Result<Option<Meeting>, Error> {
        let Some(text) = &self.follow else {
            return Ok(None);
        };
        Meeting::at("--follow", text, self.token()?, self.connect_timeout).map(Some)
    }

    /// Where other loads follow this one, and how many, if any do.
    pub fn led(&self) -> Result<Option<(Meeting, u64)>, Error> {
        let (Some(followers), Some(text)) = (self.lead, &self.listen) else {
            return Ok(None);
        };
        let meeting = Meeting::at("--listen", text, self.token()?, self.connect_timeout)?;
        Ok(Some((meeting, followers)))
    }

    /// The token of the loads that search together, if it is named.
    fn token(&self) -> Result<Option<Token>, Error> {
        let variable = self.token_from.as_deref();
        let token = variable.map(|it| secret("token", it)).transpose()?;
        token.map(Token::new).transpose()
    }

    /// The one rate that a search checks, if one is given.
    fn checked_rate(&self) -> Result<Option<f64>, Error> {
        match self.rate {
            None => Ok(None),
            Some(AskedRate::PerSecond(rate)) => possible(rate).map(Some),
            Some(AskedRate::OfGreatest(share)) => Err(Error::Usage(format!(
                "--rate {:.0}% with --slo: a search has no greatest rate before it; a number, like 20000, or --rate without --slo",
                share * 100.0
            ))),
        }
    }

    /// The pace of a load of this length.
    fn pace(&self, duration_ns: u64) -> Result<AskedPace, Error> {
        let Some(rate) = self.rate else {
            if self.arrivals.is_some() {
                return Err(Error::Usage(
                    "--arrivals is for an open loop: give it a --rate or an --slo".to_owned(),
                ));
            }
            let think_ns = self.think;
            return Ok(AskedPace::Given(Pace::Closed { think_ns }));
        };
        let (spread, backlog_max) = (self.arrivals.unwrap_or(Spread::Constant), self.backlog);
        Ok(match rate {
            AskedRate::PerSecond(rate) => AskedPace::Given(Pace::Open {
                rate_per_second: possible(rate)?,
                spread,
                backlog_max,
            }),
            AskedRate::OfGreatest(share) => AskedPace::Share(ShareOfGreatest {
                share,
                spread,
                backlog_max,
                closed_ns: (duration_ns / GREATEST_FRACTION).max(GREATEST_NS_MIN),
            }),
        })
    }
}

/// A rate that a schedule can have.
fn possible(rate: f64) -> Result<f64, Error> {
    if !(rate.is_finite() && rate > 0.0) {
        return Err(Error::Usage(format!(
            "--rate {rate}: a rate above 0 is needed"
        )));
    }
    match (RATE_MIN..=RATE_MAX).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::Usage(format!(
            "--rate {rate:e}: at least {RATE_MIN} and at most {RATE_MAX} transactions a second"
        ))),
    }
}

/// A text that no other load has, for keys that a server keeps from one load to the next.
fn new_run_id() -> String {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{:x}", since.as_nanos())
}

/// The value of an environment variable with a secret: `--password-from` names one with a password.
fn secret(what: &str, variable: &str) -> Result<String, Error> {
    std::env::var(variable).map_err(|error| {
        Error::Usage(match error {
            VarError::NotUnicode(_) => format!(
                "--{what}-from {variable}: the value of this environment variable is not UTF-8 text, and no other {what} can be sent; another {what}, or this one in UTF-8"
            ),
            VarError::NotPresent if is_variable(variable) => {
                format!("--{what}-from {variable}: this environment variable is not set")
            }
            VarError::NotPresent => format!(
                "--{what}-from takes the name of an environment variable, such as {}, and not the {what} itself",
                what.to_uppercase()
            ),
        })
    })
}

/// Whether a text looks like the name of an environment variable: another one may be the password
/// itself, and is not shown.
fn is_variable(text: &str) -> bool {
    let of_a_name = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    text.bytes().all(of_a_name) && !text.starts_with(|it: char| it.is_ascii_digit())
}
