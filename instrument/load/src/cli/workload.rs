//! What the sessions do, from the command line.

use std::sync::Arc;

use super::Arguments;
use crate::data::Ground;
use crate::error::Error;
use crate::target::Target;
use crate::workload::Workload;
use crate::workload::keys::Keys;
use crate::workload::script::Scripts;
use crate::workload::tpcb::{Profile, Tpcb};

impl Arguments {
    /// The workload, and the data that it needs, if it needs any.
    pub(super) fn workload(
        &self,
        target: &Target,
    ) -> Result<(Arc<dyn Workload>, Option<Ground>), Error> {
        let dialect = match target.dialect() {
            Some(dialect) if self.command.is_empty() => dialect,
            of_database => {
                self.refuse_upkeep()?;
                let keys: Keys = self.keys.parse()?;
                let none = Scripts::new(keys, self.value_bytes as usize);
                let scripts = match of_database {
                    Some(_) if self.pipeline > 1 && self.command.len() > 1 => {
                        return Err(Error::Asked(format!(
                            "--pipeline {} with several --command: the transactions of a session would be mixed; one --command, or more --sessions",
                            self.pipeline
                        )));
                    }
                    Some(_) => self.scripts(none.with_bare_keys())?,
                    None => self.scripts(none)?,
                };
                return Ok((Arc::new(scripts), None));
            }
        };
        if self.mix.is_some() {
            return Err(Error::Asked(
                "--mix is for key-value servers; a database has --workload and --command"
                    .to_owned(),
            ));
        }
        let name = self.workload.as_deref().unwrap_or(Profile::Rw3.name());
        let data = self.bank.data(name)?;
        self.refuse_pipelines(data.profile)?;
        let new_share = self.bank.new_statements(target)?;
        let workload = Tpcb::new(data, dialect, self.bank.round_trips(), new_share)?;
        let ground = Ground {
            data,
            dialect,
            desks: target.desks(self.connect_timeout),
        };
        Ok((Arc::new(workload), Some(ground)))
    }

    /// Only the named workloads of databases have data of their own.
    fn refuse_upkeep(&self) -> Result<(), Error> {
        if !self.bank.keeps_any() {
            return Ok(());
        }
        Err(Error::Asked(
            "--init, --verify and --ledger are for the named workloads of databases: others have no data of their own".to_owned(),
        ))
    }

    /// Transactions of several statements cannot be under way beside each other on a connection.
    fn refuse_pipelines(&self, profile: Profile) -> Result<(), Error> {
        if self.pipeline == 1 || !profile.is_transaction() {
            return Ok(());
        }
        Err(Error::Asked(format!(
            "--pipeline {}: a session has one transaction of {} at a time; --round-trips one sends its statements together",
            self.pipeline,
            profile.name()
        )))
    }

    fn scripts(&self, none: Scripts) -> Result<Scripts, Error> {
        if let Some(mix) = &self.mix {
            return mix.split(',').try_fold(none, with_part);
        }
        if self.command.is_empty() {
            let name = self.workload.as_deref().unwrap_or("get");
            return Ok(none.with_named(name, 1)?);
        }
        let commands: Vec<&str> = self.command.iter().map(String::as_str).collect();
        Ok(none.with("custom", 1, &commands)?)
    }
}

/// Adds a part of a mix, such as `get=9`.
fn with_part(scripts: Scripts, part: &str) -> Result<Scripts, Error> {
    let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
    let weight = weight
        .parse::<u32>()
        .ok()
        .filter(|it| (1..=1_000_000).contains(it));
    let weight = weight.ok_or_else(|| {
        Error::Asked(format!(
            "--mix {part:?}: a weight from 1 to 1,000,000, as in get=9,set=1"
        ))
    })?;
    Ok(scripts.with_named(name, weight)?)
}
