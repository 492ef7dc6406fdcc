//! Where in their programs the threads of roles ran, for the records of the roles.

use concurve_sites::{HotFile, HotFunction, HotPlaces, HotThread, Resolver};
use concurve_wire::record::{
    HotFileRecord, HotFunctionRecord, HotRecord, HotThreadRecord, RoleRecord,
};

use super::sites::bounded;
use crate::role::Role;

/// Most files and functions in the record of a role.
const FILES_MAX: usize = 8;
const LISTED_MAX: usize = 16;
const NONE_YET: &str = "too short: a thread is sampled after each 5 ms of CPU time in user mode, of which a part is \
                        left out if threads switch often";

/// What is known of where the threads of a role ran, or why nothing is.
pub struct OfRole(Result<HotRecord, String>);

/// Where the threads of all roles ran. Programs are read for it, so it comes after the trial.
pub fn take(roles: &mut [Role], resolver: &mut Resolver) -> Vec<OfRole> {
    let of_role = |role: &mut Role| {
        let hot = std::mem::take(&mut role.hot);
        OfRole(match (&role.samples, role.ran()) {
            (_, false) => Err("the role never ran".into()),
            (None, _) => Err(role.samples_refusal.clone().unwrap_or_default()),
            (Some(_), true) if hot.is_empty() => Err(NONE_YET.into()),
            (Some(_), true) => Ok(record(resolver.hot(&hot))),
        })
    };
    roles.iter_mut().map(of_role).collect()
}

impl OfRole {
    /// Completes the record of a role.
    pub fn written(self, mut record: RoleRecord) -> RoleRecord {
        match self.0 {
            Ok(hot) => record.hot = Some(hot),
            Err(reason) => {
                record.absent.insert("hot".into(), reason);
            }
        }
        record
    }
}

fn record(places: HotPlaces) -> HotRecord {
    let file = |it: HotFile| HotFileRecord {
        name: bounded(it.name),
        samples: it.samples,
    };
    let function = |it: HotFunction| HotFunctionRecord {
        function: it.function.map(bounded),
        file: bounded(it.file),
        samples: it.samples,
        first: it.first,
        waiting: it.waiting,
    };
    let thread = |it: HotThread| HotThreadRecord {
        tid: it.tid,
        samples: it.samples,
        waiting: it.waiting,
    };
    HotRecord {
        samples: places.samples,
        unknown: places.unknown,
        lost: places.lost,
        halved: places.halved,
        files: places.files.into_iter().take(FILES_MAX).map(file).collect(),
        listed: places
            .functions
            .into_iter()
            .take(LISTED_MAX)
            .map(function)
            .collect(),
        threads: places.threads.into_iter().map(thread).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let file = |samples| HotFile {
            name: "program".into(),
            samples,
        };
        let function = |samples| HotFunction {
            function: Some("ü".repeat(1000)),
            file: "program".into(),
            samples,
            first: 1,
            waiting: 0,
        };
        let found = record(HotPlaces {
            samples: 100,
            files: (0..50).map(file).collect(),
            functions: (0..50).map(function).collect(),
            ..HotPlaces::default()
        });
        assert_eq!(
            (found.files.len(), found.listed.len()),
            (FILES_MAX, LISTED_MAX)
        );
        let name = found.listed[0].function.as_deref().unwrap();
        assert!(name.chars().count() < 500);
    }
}
