//! What a store may contain after a start: the model that judges.
//!
//! Transactions commit in the order of the log, and the log is lost from its end. So after a start the
//! store is as it was after some number of the commits: at least as many as were promised to survive, at
//! most all.

use std::collections::{BTreeMap, BTreeSet};

/// A record: the number of its file, counted as files were made, and its own number.
pub type Name = (u32, u32);
pub type Version = u32;
pub type Records = BTreeMap<Name, Version>;
/// What a transaction changes; `None`: deleted.
pub type Changes = BTreeMap<Name, Option<Version>>;

/// Whether a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Certain,
    /// Making or dropping it has failed: the next start shows it.
    Doubtful,
}

#[derive(Debug, Clone, Default)]
pub struct Truth {
    pub files: BTreeMap<String, (u32, Presence)>,
    /// What was found at the last start.
    found: Records,
    /// The commits since, in the order of the log.
    commits: Vec<Changes>,
    /// So many of them survive a kill of the process, and a loss of power.
    survive_kill: usize,
    survive_power_loss: usize,
    /// What clients see: all commits.
    pub now: Records,
    files_made: u32,
}

impl Truth {
    /// A transaction commits; its number.
    pub fn commit(&mut self, changes: Changes) -> usize {
        for (name, version) in &changes {
            set(&mut self.now, *name, *version);
        }
        self.commits.push(changes);
        self.commits.len() - 1
    }

    /// A commit was acknowledged: it and all before it survive.
    pub fn acknowledged(&mut self, commit: usize, survives_power_loss: bool) {
        self.survive_kill = self.survive_kill.max(commit + 1);
        if survives_power_loss {
            self.survive_power_loss = self.survive_power_loss.max(commit + 1);
        }
    }

    /// All commits were forced to the disk.
    pub fn all_forced(&mut self) {
        self.survive_kill = self.commits.len();
        self.survive_power_loss = self.commits.len();
    }

    /// What of the commits must be there after a kill; after a loss of power if `power`.
    pub fn least(&self, power: bool) -> usize {
        match power {
            true => self.survive_power_loss,
            false => self.survive_kill,
        }
    }

    pub fn make_file(&mut self, name: &str, presence: Presence) {
        self.files
            .insert(name.to_owned(), (self.files_made, presence));
        self.files_made += 1;
    }

    pub fn drop_file(&mut self, name: &str) {
        if let Some((file, _)) = self.files.remove(name) {
            self.now.retain(|it, _| it.0 != file);
        }
    }

    pub fn doubt_file(&mut self, name: &str) {
        if let Some((_, presence)) = self.files.get_mut(name) {
            *presence = Presence::Doubtful;
        }
    }

    /// The number of a file.
    pub fn file(&self, name: &str) -> Option<u32> {
        self.files.get(name).map(|it| it.0)
    }

    /// Takes over which files a start has found.
    ///
    /// # Errors
    /// If a file that must be there is not, or the reverse.
    pub fn find_files(&mut self, found: &[String]) -> Result<(), String> {
        if let Some(other) = found.iter().find(|it| !self.files.contains_key(*it)) {
            return Err(format!("there is a file {other}, which was never made"));
        }
        let is_found = |name: &str| found.iter().any(|it| it == name);
        let is_lost = |name: &str, it: Presence| !is_found(name) && it == Presence::Certain;
        if let Some((name, _)) = self.files.iter().find(|(name, it)| is_lost(name, it.1)) {
            return Err(format!("the file {name} is lost"));
        }
        self.files.retain(|name, _| is_found(name));
        for (_, presence) in self.files.values_mut() {
            *presence = Presence::Certain;
        }
        Ok(())
    }

    /// Compares what a start has found, and goes on from it. `least` commits must be there.
    ///
    /// # Errors
    /// If no number of commits gives what was found: how it differs.
    pub fn judge(&mut self, found: Records, least: usize) -> Result<usize, String> {
        let files: BTreeSet<u32> = self.files.values().map(|it| it.0).collect();
        let exists = |name: &Name| files.contains(&name.0);
        let mut state = self.found.clone();
        state.retain(|name, _| exists(name));
        let change = |state: &mut Records, changes: &Changes| -> isize {
            let mut more = 0;
            for (name, version) in changes.iter().filter(|it| exists(it.0)) {
                more -= isize::from(state.get(name) != found.get(name));
                set(state, *name, *version);
                more += isize::from(state.get(name) != found.get(name));
            }
            more
        };
        for changes in &self.commits[..least] {
            change(&mut state, changes);
        }
        let at_least = difference(&state, &found);
        let mut differing = at_least.len() as isize;
        let mut commits = least;
        while differing != 0 {
            let Some(changes) = self.commits.get(commits) else {
                return Err(format!(
                    "{least} of {} commits must be there, and no number of them from that on gives what \
                     was found; after {least} of them {} records differ (name, expected, found): {:?}",
                    self.commits.len(),
                    at_least.len(),
                    &at_least[..at_least.len().min(8)]
                ));
            };
            differing += change(&mut state, changes);
            commits += 1;
        }
        self.now.clone_from(&found);
        self.found = found;
        self.commits.clear();
        (self.survive_kill, self.survive_power_loss) = (0, 0);
        Ok(commits)
    }
}

fn set(records: &mut Records, name: Name, version: Option<Version>) {
    match version {
        Some(version) => records.insert(name, version),
        None => records.remove(&name),
    };
}

/// The records that differ, with both versions.
fn difference(one: &Records, other: &Records) -> Vec<(Name, Option<Version>, Option<Version>)> {
    let names: BTreeSet<&Name> = one.keys().chain(other.keys()).collect();
    let pairs = names.into_iter().map(|name| {
        let (a, b) = (one.get(name).copied(), other.get(name).copied());
        (*name, a, b)
    });
    pairs.filter(|it| it.1 != it.2).collect()
}
