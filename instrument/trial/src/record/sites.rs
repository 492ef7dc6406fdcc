//! The places in programs where threads waited for locks, for the records of their roles.

use std::cmp::Reverse;
use std::collections::HashMap;

use concurve_sites::{Found, Resolver, Site, Sites};
use concurve_wire::record::{RoleRecord, SiteRecord, SitesRecord, ThreadReadings};

use crate::waits::sampling::WaitSampling;

/// Most sites in the record of a role, most holders and waiting threads of a site, and most characters of a name: of templates
/// names may have thousands.
const LISTED_MAX: usize = 16;
const HOLDERS_MAX: usize = 4;
const WAITERS_MAX: usize = 16;
const NAME_CHARACTERS_MAX: usize = 400;
const NO_LINES_OF_GO: &str = "no stack of a goroutine led to a function of the program: it has no debug information (build it \
     without -ldflags=-w), or was replaced while it ran";
const NO_FRAMES: &str = "no stack led to a function of the program: its files have no call frame information (build \
     it with -fasynchronous-unwind-tables, the usual setting), or were replaced while it ran";
const NO_NAMES: &str =
    "functions have no names: the program has no symbols, and /usr/lib/debug has no file of them";

/// What is known of the sites of a role.
#[derive(Debug, Default)]
pub struct OfRole {
    record: Option<SitesRecord>,
    /// Why there are none.
    refusal: Option<String>,
    /// Where each sample stands among those that are listed, by its number.
    pub places: HashMap<u64, usize>,
}

/// The sites of all roles. Programs are read for it, so it comes after the trial.
pub fn take(waits: &mut WaitSampling, resolver: &mut Resolver) -> Vec<OfRole> {
    let of_role = |samples: concurve_sites::Samples| {
        let sites = (!samples.is_empty()).then(|| resolver.resolve(&samples));
        OfRole {
            places: sites.as_ref().map(places).unwrap_or_default(),
            record: sites.map(record),
            refusal: samples.refusal,
        }
    };
    waits.take_samples().into_iter().map(of_role).collect()
}

impl OfRole {
    /// Completes the record of a role.
    pub fn written(self, mut record: RoleRecord) -> RoleRecord {
        let sites = self.record;
        let of_runtime = record.absent.get("runtime");
        let is_go = record.runtime.is_some();
        let reason = self.refusal;
        let reason = reason.or_else(|| why_absent(sites.as_ref(), of_runtime, is_go));
        record.sites = sites;
        if let Some(reason) = reason {
            record.absent.insert("sites".into(), reason);
        }
        record
    }
}

fn places(sites: &Sites) -> HashMap<u64, usize> {
    let listed = sites.found.iter().take(LISTED_MAX).enumerate();
    listed
        .flat_map(|(place, site)| site.samples.iter().map(move |number| (*number, place)))
        .collect()
}

/// Why there are no sites, or nothing to see in them. A program whose runtime could not be read has no goroutines to
/// sample.
fn why_absent(
    sites: Option<&SitesRecord>,
    of_runtime: Option<&String>,
    is_go: bool,
) -> Option<String> {
    match sites {
        None => of_runtime.cloned(),
        Some(sites) => gap(sites, is_go).map(str::to_owned),
    }
}

/// What the sites lack, if that is all of them.
fn gap(sites: &SitesRecord, is_go: bool) -> Option<&'static str> {
    let is_nameless = sites.listed.iter().all(|it| it.function.is_none());
    match (sites.readings, sites.unknown) {
        (0, 0) => None,
        (0, _) if is_go => Some(NO_LINES_OF_GO),
        (0, _) => Some(NO_FRAMES),
        _ => is_nameless.then_some(NO_NAMES),
    }
}

fn record(sites: Sites) -> SitesRecord {
    SitesRecord {
        readings: sites.readings,
        unknown: sites.unknown,
        torn: sites.torn,
        skipped: sites.skipped,
        listed: sites.found.into_iter().take(LISTED_MAX).map(site).collect(),
    }
}

fn site(site: Site) -> SiteRecord {
    let held: u64 = site.holders.values().sum();
    SiteRecord {
        primitive: site.primitive.name().into(),
        call: site.call.into(),
        operation: site.operation.map(bounded),
        function: site.function.map(bounded),
        file: site.file.map(bounded),
        line: site.line,
        module: bounded(site.module),
        offset: format!("{:#x}", site.offset),
        found: found(site.found).into(),
        runtime: site.runtime.map(str::to_owned),
        lock: site.lock.map(bounded),
        readings: site.readings,
        threads: site.threads.len() as u64,
        waiters: most_seen(site.threads, WAITERS_MAX),
        held: (held > 0).then_some(held),
        holders: most_seen(site.holders, HOLDERS_MAX),
        callers: site.callers.into_iter().map(bounded).collect(),
    }
}

/// The threads with most readings.
fn most_seen(threads: impl IntoIterator<Item = (u32, u64)>, count: usize) -> Vec<ThreadReadings> {
    let mut seen: Vec<_> = threads
        .into_iter()
        .map(|(tid, readings)| ThreadReadings { tid, readings })
        .collect();
    seen.sort_by_key(|it| (Reverse(it.readings), it.tid));
    seen.truncate(count);
    seen
}

fn found(found: Found) -> &'static str {
    match found {
        Found::Cfi => "cfi",
        Found::ScanExact => "scan_exact",
        Found::ScanWeak => "scan_weak",
    }
}

/// A name that is not longer than records have them.
pub fn bounded(text: String) -> String {
    match text.char_indices().nth(NAME_CHARACTERS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use concurve_sites::Primitive;

    use super::*;

    fn one(readings: u64, function: String) -> Site {
        Site {
            call: "futex",
            primitive: Primitive::Mutex,
            operation: Some("pthread_mutex_lock".into()),
            function: Some(function),
            file: None,
            line: None,
            module: "/usr/bin/program".into(),
            offset: 0x1234,
            found: Found::Cfi,
            runtime: None,
            lock: None,
            readings,
            threads: (1..=20).map(|tid| (tid, u64::from(tid))).collect(),
            samples: BTreeSet::from([readings]),
            holders: (1..=9)
                .map(|tid| (tid, u64::from(tid)))
                .collect::<HashMap<_, _>>(),
            callers: Vec::new(),
        }
    }

    #[test]
    fn a_go_program_whose_goroutines_cannot_be_read_says_why() {
        let stripped = "the Go program has no symbols (it was stripped)";
        let of_runtime = Some(String::from(stripped));
        let why = |sites: Option<&SitesRecord>| why_absent(sites, of_runtime.as_ref(), false);
        assert_eq!(why(None).as_deref(), Some(stripped));
        // Another program of the role has sites.
        let found = SitesRecord {
            readings: 3,
            listed: vec![SiteRecord {
                function: Some("add".into()),
                ..SiteRecord::default()
            }],
            ..SitesRecord::default()
        };
        assert_eq!(why(Some(&found)), None);
        let nameless = SitesRecord {
            unknown: 3,
            ..SitesRecord::default()
        };
        assert_eq!(gap(&nameless, true), Some(NO_LINES_OF_GO));
        assert_eq!(gap(&nameless, false), Some(NO_FRAMES));
    }

    #[test]
    fn what_all_sites_lack_has_its_reason() {
        let of = |readings, unknown, functions: &[Option<&str>]| {
            let site = |it: &Option<&str>| SiteRecord {
                function: it.map(str::to_owned),
                ..SiteRecord::default()
            };
            gap(
                &SitesRecord {
                    readings,
                    unknown,
                    listed: functions.iter().map(site).collect(),
                    ..SitesRecord::default()
                },
                false,
            )
        };
        assert_eq!(of(0, 0, &[]), None);
        assert_eq!(of(0, 3, &[]), Some(NO_FRAMES));
        assert_eq!(of(5, 3, &[None, None]), Some(NO_NAMES));
        assert_eq!(of(5, 3, &[None, Some("add")]), None);
    }

    #[test]
    fn lists_and_names_are_bounded() {
        let found = (0..50).map(|it| one(it, "ü".repeat(1000))).collect();
        let sites = Sites {
            readings: 50,
            found,
            ..Sites::default()
        };
        let places = places(&sites);
        assert_eq!((places.len(), places[&0]), (LISTED_MAX, 0));
        let record = record(sites);
        assert_eq!((record.readings, record.listed.len()), (50, LISTED_MAX));
        let first = &record.listed[0];
        let name = first.function.as_deref().unwrap();
        assert_eq!(name.chars().count(), NAME_CHARACTERS_MAX + 1);
        assert_eq!((first.offset.as_str(), first.threads), ("0x1234", 20));
        assert_eq!(
            (first.waiters.len(), first.waiters[0].tid),
            (WAITERS_MAX, 20)
        );
        assert_eq!((first.held, first.holders.len()), (Some(45), HOLDERS_MAX));
        assert_eq!(
            first.holders[0],
            ThreadReadings {
                tid: 9,
                readings: 9
            }
        );
    }
}
