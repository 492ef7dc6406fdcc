//! What the lock service alone is told.

use std::path::PathBuf;

use super::{Durability, Latching, name_of, refused};
use crate::backup;
use crate::error::Error;
use crate::locks::latched;
use crate::locks::mode::Rules;

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Locks")]
#[group(id = "locks")]
pub struct LockOptions {
    /// Locks that the table may hold; keys of SET as many [default: 1000000]
    #[arg(long, value_name = "LOCKS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    capacity: Option<u64>,

    /// Whether another owner's O keeps E and X away [default: true]
    #[arg(long, value_name = "YES", action = clap::ArgAction::Set)]
    optimistic_blocks_exclusive: Option<bool>,

    /// Keep locks taken with BACKUP in this file
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
}

/// How locks are kept.
#[derive(Debug, Clone)]
pub struct LockSettings {
    pub latching: latched::Latching,
    pub capacity: u64,
    pub rules: Rules,
    pub backup: Option<(PathBuf, backup::Durability)>,
}

impl LockOptions {
    /// One that was given: other services have none of them.
    pub fn given(&self) -> Option<&'static str> {
        let blocks = "--optimistic-blocks-exclusive";
        let given = [
            ("--capacity", self.capacity.is_some()),
            (blocks, self.optimistic_blocks_exclusive.is_some()),
            ("--backup", self.backup.is_some()),
        ];
        given.into_iter().find_map(|(name, is)| is.then_some(name))
    }

    /// What they mean together with the dials of all services.
    pub fn settings(
        &self,
        latching: Latching,
        durability: Durability,
    ) -> Result<LockSettings, Error> {
        let Some(durability) = durability.of_locks() else {
            let text = format!("--durability {}", name_of(durability));
            return Err(refused(&text, "locks: take process or power"));
        };
        Ok(LockSettings {
            latching: match latching {
                Latching::Global => latched::Latching::Global,
                Latching::Record => latched::Latching::Record,
                Latching::File => {
                    return Err(refused("--latching file", "locks: take global or record"));
                }
            },
            capacity: self.capacity.unwrap_or(1_000_000),
            rules: Rules {
                optimistic_blocks_exclusive: self.optimistic_blocks_exclusive.unwrap_or(true),
            },
            backup: self.backup.clone().map(|file| (file, durability)),
        })
    }
}
