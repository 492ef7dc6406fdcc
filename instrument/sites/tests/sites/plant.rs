//! Programs that say at which site each of their threads waits: `benches/sites_programs`. The bench and the
//! tests judge samples by them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use concurve_clock as clock;
use concurve_probe::golang::GoProgram;
use concurve_probe::proc_fs::{ProcFs, SchedstatFile, SyscallFile};
use concurve_probe::syscall::{Doing, Kind, Wait};
use concurve_sites::{Captured, Resolver, Sample, Site, Watched, Watcher};

const PAUSE: Duration = Duration::from_micros(500);
/// Wrong answers that are kept to be shown.
const SHOWN_MAX: usize = 5;
/// What takes a mutex of glibc, in C and in C++.
const MUTEXES: [&str; 3] = [
    "pthread_mutex_lock(",
    "mutex.lock()",
    "std::lock_guard<std::mutex>",
];

/// A place in a source where threads wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueSite {
    pub function: String,
    pub line: u32,
    /// It takes a mutex of glibc, which says who has it.
    pub says_owner: bool,
}

/// The sites of a source, by their numbers: lines with `WAIT(thread, NUMBER, …)  // FUNCTION`, or with the
/// comments of Python.
pub fn true_sites(source: &Path) -> io::Result<BTreeMap<u64, TrueSite>> {
    let text = std::fs::read_to_string(source)?;
    let is_of_c = source
        .extension()
        .is_some_and(|it| it == "c" || it == "cpp");
    let site = |(index, line): (usize, &str)| {
        let (call, function) = line
            .rsplit_once(" // ")
            .or_else(|| line.rsplit_once("  # "))?;
        let calls = ["WAIT(thread, ", "WAIT(it.thread, ", "wait!(thread, "];
        let (_, rest) = calls.iter().find_map(|it| call.split_once(it))?;
        let number = rest.split_once(',')?.0.parse().ok()?;
        let line = index as u32 + 1;
        let function = function.trim().to_owned();
        let says_owner = is_of_c && MUTEXES.iter().any(|it| call.contains(it));
        let site = TrueSite {
            function,
            line,
            says_owner,
        };
        Some((number, site))
    };
    Ok(text.lines().enumerate().filter_map(site).collect())
}

/// A planted program that runs.
pub struct Plant {
    child: Child,
    /// From when it is ready on: a script may start it as another program before.
    memory: Option<File>,
    truth: u64,
    stride: u64,
    holder: Option<u64>,
    threads: Vec<(u64, u32)>,
}

impl Plant {
    pub fn start(command: &[String]) -> io::Result<Self> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().expect("it is a pipe");
        let mut plant = Self {
            child,
            memory: None,
            truth: 0,
            stride: 0,
            holder: None,
            threads: Vec::new(),
        };
        for line in BufReader::new(output).lines() {
            let line = line?;
            let words: Vec<&str> = line.split(' ').collect();
            let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
            let number = |text: &str| text.parse::<u64>();
            match words.as_slice() {
                ["truth", at, stride] => {
                    plant.truth = address(at).map_err(io::Error::other)?;
                    plant.stride = number(stride).map_err(io::Error::other)?;
                }
                ["holder", at] => plant.holder = Some(address(at).map_err(io::Error::other)?),
                ["thread", index, tid] => {
                    let index = number(index).map_err(io::Error::other)?;
                    plant
                        .threads
                        .push((index, tid.parse().map_err(io::Error::other)?));
                }
                ["ready"] => {
                    plant.memory = Some(File::open(format!("/proc/{}/mem", plant.child.id()))?);
                    return Ok(plant);
                }
                _ => return Err(io::Error::other(format!("the plant said {line:?}"))),
            }
        }
        Err(io::Error::other("the plant ended before it was ready"))
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        let read = self
            .memory
            .as_ref()
            .map(|it| it.read_exact_at(&mut bytes, address));
        match read {
            Some(Ok(())) => u64::from_le_bytes(bytes),
            _ => 0,
        }
    }

    /// The number of the site at which a thread waits, and who has the lock.
    fn truth_of(&self, index: u64) -> (u64, u64) {
        let site = self.word(self.truth + index * self.stride);
        (site, self.holder.map_or(0, |at| self.word(at)))
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often samples of a plant were right.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Samples whose true site is known.
    pub judged: u64,
    pub function: u64,
    pub line: u64,
    /// A function was named that is not the one, or a line.
    pub wrong: u64,
    pub unknown: u64,
    /// Samples that were taken, whether their true site is known or not.
    pub taken: u64,
    pub torn: u64,
    /// Samples of which it is known who had the lock, and for which a holder was named; those that were right.
    pub held: u64,
    pub holder: u64,
    /// A holder was named of what does not say who has it.
    pub misread: u64,
    /// How often each kind of wait was.
    pub primitives: BTreeMap<&'static str, u64>,
    /// How often each lock was named.
    pub locks: BTreeMap<String, u64>,
    /// CPU time of all attempts to take samples, those that were torn too, and of naming the sites.
    pub capture_cpu_ns: u64,
    pub resolve_cpu_ns: u64,
    pub shown: Vec<String>,
}

struct Judged {
    sample: Sample,
    site: u64,
    holder: u64,
}

/// Samples the threads of a plant until so many samples can be judged, or until the time is over.
pub fn judge(
    plant: &Plant,
    truth: &BTreeMap<u64, TrueSite>,
    samples: usize,
    limit: Duration,
) -> Verdict {
    let proc_fs = ProcFs::default();
    let pid = plant.child.id();
    let mut watcher = Watcher::new(proc_fs.clone());
    let mut verdict = Verdict::default();
    let mut judged = Vec::new();
    let mut threads: Vec<_> = plant
        .threads
        .iter()
        .filter_map(|(index, tid)| {
            let call = proc_fs.open_syscall(pid, *tid).ok()?;
            let account = proc_fs.open_schedstat(pid, *tid).ok()?;
            Some((*index, call, account, Watched::open(&proc_fs, pid, *tid)?))
        })
        .collect();
    let mut go = GoProgram::open(&proc_fs, pid).and_then(Result::ok);
    let until = Instant::now() + limit;
    while judged.len() < samples && Instant::now() < until {
        watcher.begin(&[pid]);
        if let Some(go) = &mut go {
            let goroutines = go.sample().map_or_else(Vec::new, |it| it.parked);
            for parked in goroutines {
                let mut threads = plant.threads.iter();
                let Some((index, _)) = threads.find(|it| u64::from(it.1) == parked.number) else {
                    continue;
                };
                let (before, _) = plant.truth_of(*index);
                let cpu_before = clock::thread_cpu_ns();
                let captured = watcher.capture_goroutine(pid, &parked);
                let cpu_ns = clock::thread_cpu_ns() - cpu_before;
                let (site, _) = plant.truth_of(*index);
                if let Some(sample) = verdict.sample(captured, cpu_ns)
                    && before == site
                    && truth.contains_key(&site)
                {
                    judged.push(Judged {
                        sample,
                        site,
                        holder: 0,
                    });
                }
            }
            thread::sleep(PAUSE);
            continue;
        }
        for (index, call, account, thread) in &mut threads {
            if !waits_for_lock(call) {
                continue;
            }
            let before = (runs(account), plant.truth_of(*index));
            let cpu_before = clock::thread_cpu_ns();
            let captured = watcher.capture(thread, call);
            let cpu_ns = clock::thread_cpu_ns() - cpu_before;
            let (site, holder) = plant.truth_of(*index);
            let after = (runs(account), (site, holder));
            // The site is of the thread alone; who has the lock may change while it waits.
            if let Some(sample) = verdict.sample(captured, cpu_ns)
                && before.0 == after.0
                && before.1.0 == site
                && truth.contains_key(&site)
            {
                let is_held = before.1.1 == holder;
                let holder = if is_held { holder } else { 0 };
                judged.push(Judged {
                    sample,
                    site,
                    holder,
                });
            }
        }
        thread::sleep(PAUSE);
    }
    let cpu_before = clock::thread_cpu_ns();
    let mut resolver = Resolver::default();
    let sites: Vec<_> = judged
        .iter()
        .map(|it| resolver.site_of(&it.sample))
        .collect();
    verdict.resolve_cpu_ns = clock::thread_cpu_ns() - cpu_before;
    for (judged, site) in judged.iter().zip(sites) {
        verdict.add(judged, site, &truth[&judged.site]);
    }
    verdict
}

impl Verdict {
    /// Counts an attempt to take a sample, and what it took; the sample, if it is one.
    fn sample(&mut self, captured: Option<Captured>, cpu_ns: u64) -> Option<Sample> {
        self.capture_cpu_ns += cpu_ns;
        match captured {
            Some(Captured::Wait(sample)) => {
                self.taken += 1;
                return Some(sample);
            }
            Some(Captured::Torn) => self.torn += 1,
            _ => {}
        }
        None
    }

    fn add(&mut self, judged: &Judged, site: Option<Site>, truth: &TrueSite) {
        self.judged += 1;
        let Some(site) = site else {
            self.unknown += 1;
            self.show(format!("{truth:?}: unknown"));
            return;
        };
        let function = site.function.as_deref();
        let is_right = function.is_some_and(|it| is_function(it, &truth.function));
        let is_line = site.line == Some(truth.line);
        self.unknown += u64::from(function.is_none());
        self.function += u64::from(is_right);
        self.line += u64::from(is_line);
        let is_wrong = function.is_some() && !is_right || site.line.is_some() && !is_line;
        self.wrong += u64::from(is_wrong);
        *self.primitives.entry(site.primitive.name()).or_default() += 1;
        if let Some(lock) = &site.lock {
            *self.locks.entry(lock.clone()).or_default() += 1;
        }
        let holder = site.holders.keys().next();
        let is_misread = holder.is_some() && !truth.says_owner;
        self.misread += u64::from(is_misread);
        if let Some(holder) = holder
            && judged.holder != 0
        {
            self.held += 1;
            self.holder += u64::from(u64::from(*holder) == judged.holder);
        }
        if is_wrong || is_misread || function.is_none() {
            self.show(format!("{truth:?}: {site:?}"));
        }
    }

    /// How often a lock was named so.
    #[allow(dead_code)]
    pub fn named(&self, lock: &str) -> u64 {
        self.locks.get(lock).copied().unwrap_or(0)
    }

    fn show(&mut self, text: String) {
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(text);
        }
    }
}

/// Whether a name is the one, whatever stands before it and whatever its parameters are.
fn is_function(named: &str, expected: &str) -> bool {
    if named == expected {
        return true;
    }
    let bare = named.split('(').next().unwrap_or(named);
    bare == expected || bare.ends_with(&format!("::{expected}"))
}

fn waits_for_lock(call: &SyscallFile) -> bool {
    match call.read() {
        Ok(Doing::Call(call)) => {
            matches!(
                call.wait(),
                Wait::Futex { .. } | Wait::Known(Kind::FileLock)
            )
        }
        _ => false,
    }
}

fn runs(account: &SchedstatFile) -> u64 {
    account.read().map_or(0, |it| it.slices)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use concurve_sites::{Found, Primitive};

    use super::*;

    const OWNER: u32 = 7;

    fn named(function: Option<&str>, line: Option<u32>) -> Site {
        Site {
            call: "futex",
            primitive: Primitive::Mutex,
            operation: None,
            function: function.map(Into::into),
            file: None,
            line,
            module: "/opt/app".into(),
            offset: 1,
            found: Found::Cfi,
            runtime: None,
            lock: None,
            readings: 1,
            threads: BTreeMap::new(),
            samples: BTreeSet::new(),
            holders: HashMap::from([(OWNER, 1)]),
            callers: Vec::new(),
        }
    }

    /// The verdict on a sample at line 9 of `add`, of a lock that a thread has.
    fn verdict(site: Option<Site>, says_owner: bool, holder: u32) -> Verdict {
        let truth = TrueSite {
            function: "add".into(),
            line: 9,
            says_owner,
        };
        let judged = Judged {
            sample: Sample::default(),
            site: 1,
            holder: holder.into(),
        };
        let mut verdict = Verdict::default();
        verdict.add(&judged, site, &truth);
        verdict
    }

    #[test]
    fn another_function_and_another_line_are_wrong() {
        let counts = |function, line| {
            let it = verdict(Some(named(function, line)), true, OWNER);
            (it.function, it.line, it.wrong, it.unknown)
        };
        assert_eq!(counts(Some("add"), Some(9)), (1, 1, 0, 0));
        assert_eq!(counts(Some("add"), None), (1, 0, 0, 0));
        assert_eq!(counts(Some("add"), Some(10)), (1, 0, 1, 0));
        assert_eq!(counts(Some("remove"), Some(9)), (0, 1, 1, 0));
        assert_eq!(counts(None, Some(10)), (0, 0, 1, 1));
        assert_eq!(verdict(None, true, OWNER).unknown, 1);
    }

    #[test]
    fn a_holder_is_right_or_not_or_nobody_says_it() {
        let counts = |says_owner, holder| {
            let it = verdict(Some(named(Some("add"), Some(9))), says_owner, holder);
            (it.held, it.holder, it.misread)
        };
        assert_eq!(counts(true, OWNER), (1, 1, 0));
        assert_eq!(counts(true, 8), (1, 0, 0));
        assert_eq!(counts(true, 0), (0, 0, 0));
        assert_eq!(counts(false, 0), (0, 0, 1));
    }

    #[test]
    fn attempts_that_were_torn_cost_time_too() {
        let mut verdict = Verdict::default();
        assert!(
            verdict
                .sample(Some(Captured::Wait(Sample::default())), 5)
                .is_some()
        );
        for other in [Some(Captured::Torn), Some(Captured::SameWait(0)), None] {
            assert!(verdict.sample(other, 2).is_none());
        }
        assert_eq!(
            (verdict.taken, verdict.torn, verdict.capture_cpu_ns),
            (1, 1, 11)
        );
    }
}
