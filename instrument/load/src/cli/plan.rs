//! Options → a checked plan.

use std::sync::Arc;

use super::Arguments;
use crate::arrivals::Spread;
use crate::desk::Desks;
use crate::embedded::Embedded;
use crate::error::Error;
use crate::plan::{End, Pace, Plan, Reach, Runners};
use crate::target::Target;

/// More processes than this are a mistake.
const PROCESSES_MAX: u64 = 2000;
const DURATION_NS: u64 = 10_000_000_000;
const SEARCH_NS: u64 = 60_000_000_000;

impl Arguments {
    /// Checks everything that can be checked before connecting.
    pub fn plan(&self) -> Result<Plan, Error> {
        let mut target = Target::parse(&self.server)?;
        target.set_password(self.password()?)?;
        let (workload, ground) = self.workload(&target)?;
        let marked = self.marked(&target)?;
        let reach = target.reach(&*workload, self.connect_timeout);
        Ok(Plan {
            workload,
            ground,
            marked,
            sessions: self.sessions,
            runners: match &reach {
                Reach::Server(_) => self.runners()?,
                Reach::Engine(engine) => self.engine_runners(&**engine)?,
            },
            reach,
            pipeline: self.pipeline,
            pace: self.pace()?,
            end: self.end(),
            warm_up_ns: self.warm_up,
            ramp_ns: self.ramp,
            seed: self.seed,
        })
    }

    /// How to get to the server that is to be told of the measured phase.
    fn marked(&self, target: &Target) -> Result<Option<Arc<dyn Desks>>, Error> {
        if self.mark_phase && !target.speaks_resp() {
            return Err(Error::Asked(
                "--mark-phase is for concurve-server: no other server is asked about the phase"
                    .to_owned(),
            ));
        }
        Ok(self.mark_phase.then(|| target.desks(self.connect_timeout)))
    }

    fn runners(&self) -> Result<Runners, Error> {
        if self.processes {
            return match self.sessions {
                ..=PROCESSES_MAX => Ok(Runners::Processes),
                many => Err(Error::Asked(format!(
                    "--processes for {many} sessions; at most {PROCESSES_MAX}"
                ))),
            };
        }
        let threads = self.threads.unwrap_or(1);
        if threads > self.sessions {
            return Err(Error::Asked(format!(
                "--threads {threads} for {} sessions leaves threads without any; at most one thread a session",
                self.sessions
            )));
        }
        Ok(Runners::Threads(threads))
    }

    /// A session of an engine is a thread, or a process.
    fn engine_runners(&self, engine: &dyn Embedded) -> Result<Runners, Error> {
        let place = engine.place();
        if self.pipeline > 1 {
            return Err(Error::Asked(format!(
                "--pipeline: a session of {place} does one transaction after the other; more --sessions"
            )));
        }
        if let Some(threads) = self.threads.filter(|it| *it != self.sessions) {
            return Err(Error::Asked(format!(
                "--threads {threads}: each session of {place} is a thread; leave it out, or take --processes"
            )));
        }
        match engine.refuses_processes() {
            Some(why) if self.processes => {
                Err(Error::Asked(format!("--processes for {place}: {why}")))
            }
            _ if self.processes => self.runners(),
            _ => Ok(Runners::Threads(self.sessions)),
        }
    }

    fn password(&self) -> Result<Option<String>, Error> {
        let Some(variable) = &self.password_from else {
            return Ok(None);
        };
        match std::env::var(variable) {
            Ok(password) => Ok(Some(password)),
            Err(_) => Err(Error::Asked(format!(
                "--password-from {variable}: this environment variable is not set"
            ))),
        }
    }

    fn pace(&self) -> Result<Pace, Error> {
        if !self.slo.is_empty() {
            // The search puts in the rates.
            return Ok(Pace::Open {
                rate_per_second: f64::NAN,
                spread: self.arrivals.unwrap_or(Spread::Poisson),
                backlog_max: self.backlog,
            });
        }
        let Some(rate_per_second) = self.rate else {
            if self.arrivals.is_some() {
                return Err(Error::Asked(
                    "--arrivals is for an open loop: give it a --rate or an --slo".to_owned(),
                ));
            }
            let think_ns = self.think;
            return Ok(Pace::Closed { think_ns });
        };
        if !(rate_per_second.is_finite() && rate_per_second > 0.0) {
            return Err(Error::Asked(format!(
                "--rate {rate_per_second}: a rate above 0 is needed"
            )));
        }
        Ok(Pace::Open {
            rate_per_second,
            spread: self.arrivals.unwrap_or(Spread::Constant),
            backlog_max: self.backlog,
        })
    }

    fn end(&self) -> End {
        match self.transactions {
            Some(total) => End::Transactions(total),
            None => {
                let usual_ns = if self.slo.is_empty() {
                    DURATION_NS
                } else {
                    SEARCH_NS
                };
                End::After {
                    ns: self.duration.unwrap_or(usual_ns),
                }
            }
        }
    }
}
