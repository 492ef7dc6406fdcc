//! Where in their programs threads ran: samples of the instruction pointer, counted by file and function.
//!
//! While a program runs, samples are only counted by the place in the file. The files are read, for the names
//! of functions, after it has ended.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use concurve_probe::perf::{Place, Sampled, TextMapping};

use crate::capture::Sample;
use crate::elf::Callee;
use crate::maps::{MappedFile, Mapping, Maps};
use crate::names;
use crate::resolve::Resolver;
use crate::unwind::{Files, Walk};
use crate::{spin, symbols};

/// Most processes whose mappings are remembered: the latest ones.
const PROCESSES_MAX: usize = 512;
/// Most mappings of a process, and most files.
const TEXTS_MAX: usize = 4096;
const FILES_MAX: usize = 4096;
/// Most places of files that are counted apart; samples at further ones count for their file alone.
const PLACES_MAX: usize = 1 << 16;
/// Most stacks that are kept; if there are more, every second one is dropped, again and again.
const STACKS_MAX: usize = 512;
/// Longest line of processes that have the mappings of the one that forked them.
const FORKS_MAX: usize = 16;
/// With fewer samples no file is read: they say nothing, and a short trial is not to pay for it. Samples of a part of
/// the time stand for more: a long trial has few of them, and those of all trials of a cell say much together.
const NAMED_SAMPLES_MIN: u64 = 10;
/// Of files with less than one sample in so many no function is named.
const NAMED_FILE_PART: u64 = 50;
/// Most frames of a runtime between its innermost function and the one that was called.
const RUNTIME_FRAMES_MAX: usize = 8;
/// Most places in programs at which threads were seen that are looked at for loops that wait.
const LOOPS_MAX: usize = 512;
/// Most threads whose samples are told apart; the list has those with most of them.
const THREADS_MAX: usize = 64;

/// The samples of a role.
#[derive(Debug, Default)]
pub struct Hot {
    processes: HashMap<u32, Process>,
    /// The oldest first.
    order: VecDeque<u32>,
    files: Vec<SeenFile>,
    by_path: HashMap<Arc<str>, usize>,
    counts: HashMap<(usize, u64), Count>,
    /// By thread, and by its places in files.
    by_thread: HashMap<(u32, usize, u64), u64>,
    stacks: Stacks,
    unknown: u64,
    lost: u64,
    halved: u32,
}

#[derive(Debug, Default)]
struct Process {
    /// The one that forked it, whose mappings it has until it maps its own.
    parent: Option<u32>,
    /// By where they begin.
    texts: BTreeMap<u64, Text>,
}

#[derive(Debug, Clone, Copy)]
struct Text {
    end: u64,
    offset: u64,
    /// None if it is code without a file, such as what is compiled at run time.
    file: Option<usize>,
}

#[derive(Debug)]
struct SeenFile {
    path: Arc<str>,
    /// None if it cannot be read, or is no file (`[vdso]`).
    mapped: Option<MappedFile>,
    is_spinning: bool,
    /// Samples at places that are not counted apart.
    unlisted: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    samples: u64,
    first: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.first += other.first;
    }
}

/// Stacks of samples in runtimes that spin, evenly spread over the trial.
#[derive(Debug, Default)]
struct Stacks {
    kept: Vec<(u64, Stack)>,
    seen: u64,
    /// As a power of two.
    stride: u32,
}

#[derive(Debug)]
struct Stack {
    file: usize,
    offset: u64,
    place: Place,
}

/// Where the threads of a role ran in user mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HotPlaces {
    pub samples: u64,
    /// Those in no file that is known, such as code that was compiled at run time.
    pub unknown: u64,
    /// Records that were dropped because they came too fast.
    pub lost: u64,
    /// How often samples were halved ([`Hot::halve`]).
    pub halved: u32,
    /// Most samples first.
    pub files: Vec<HotFile>,
    pub functions: Vec<HotFunction>,
    /// Most samples first; empty if none was in a loop that waits.
    pub threads: Vec<HotThread>,
}

/// A thread with its samples in files, and those of them in loops that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotThread {
    pub tid: u32,
    pub samples: u64,
    pub waiting: u64,
}

/// A program or library that threads ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotFile {
    /// Its name without folders.
    pub name: String,
    pub samples: u64,
}

/// A function that threads ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotFunction {
    /// None if the file has no symbols there, or is not read. In a runtime that spins, what was called of it.
    pub function: Option<String>,
    pub file: String,
    pub samples: u64,
    /// Those of the first threads of processes.
    pub first: u64,
    /// Those in loops in which a thread does nothing but wait for others.
    pub waiting: u64,
}

impl Hot {
    /// Counts what the kernel recorded: what was mapped, and then the samples, which may be younger.
    pub fn add(&mut self, texts: Vec<TextMapping>, sampled: Sampled) {
        self.lost += sampled.lost;
        for mapping in texts {
            self.map(mapping);
        }
        for place in sampled.places {
            self.count(place);
        }
    }

    /// Leaves each sample out with a probability of one half, so that samples of half of the time may follow: all of
    /// the time keeps the same weight. `kept` draws how many of a number stay.
    pub fn halve(&mut self, mut kept: impl FnMut(u64) -> u64) {
        self.halved += 1;
        self.unknown = kept(self.unknown);
        for file in &mut self.files {
            file.unlisted = kept(file.unlisted);
        }
        self.counts.retain(|_, count| {
            let others = kept(count.samples - count.first);
            count.first = kept(count.first);
            count.samples = count.first + others;
            count.samples > 0
        });
        self.by_thread.retain(|_, samples| {
            *samples = kept(*samples);
            *samples > 0
        });
        self.stacks.kept.retain(|_| kept(1) > 0);
    }

    /// A process was forked: it has the program text of its parent. What it has mapped itself may be known before.
    pub fn forked(&mut self, parent: u32, pid: u32) {
        self.process(pid).parent = Some(parent);
    }

    /// Whether nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.samples() == 0 && self.lost == 0
    }

    fn samples(&self) -> u64 {
        self.unknown + self.totals().iter().sum::<u64>()
    }

    /// Are there enough samples to read files for them? Each stands for those that the rest of the time would have had.
    fn is_worth_reading(&self) -> bool {
        let stands_for = 1u64.checked_shl(self.halved).unwrap_or(u64::MAX);
        self.samples().saturating_mul(stands_for) >= NAMED_SAMPLES_MIN
    }

    /// The samples in each file.
    fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.files.iter().map(|file| file.unlisted).collect();
        for ((file, _), count) in &self.counts {
            totals[*file] += count.samples;
        }
        totals
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        if !self.processes.contains_key(&pid) {
            self.order.push_back(pid);
            if self.order.len() > PROCESSES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.processes.remove(&oldest);
            }
        }
        self.processes.entry(pid).or_default()
    }

    fn map(&mut self, mapping: TextMapping) {
        let file = self.file(&mapping);
        let end = mapping.start.checked_add(mapping.bytes);
        let Some(end) = end.filter(|end| *end > mapping.start) else {
            return;
        };
        let texts = &mut self.process(mapping.pid).texts;
        // What it replaces, by an exec or by loading another library, as far as it does.
        let replaced: Vec<(u64, Text)> = texts
            .range(..end)
            .rev()
            .take_while(|(_, text)| text.end > mapping.start)
            .map(|(start, text)| (*start, *text))
            .collect();
        for (start, text) in replaced {
            texts.remove(&start);
            if start < mapping.start {
                let end = mapping.start;
                texts.insert(start, Text { end, ..text });
            }
            if text.end > end {
                let offset = text.offset.wrapping_add(end - start);
                texts.insert(end, Text { offset, ..text });
            }
        }
        if texts.len() < TEXTS_MAX {
            let offset = mapping.offset;
            texts.insert(mapping.start, Text { end, offset, file });
        }
    }

    fn file(&mut self, mapping: &TextMapping) -> Option<usize> {
        let path = mapping.path.to_str()?;
        if path.starts_with("//") || !path.starts_with(['/', '[']) {
            return None;
        }
        if let Some(known) = self.by_path.get(path) {
            return Some(*known);
        }
        if self.files.len() == FILES_MAX {
            return None;
        }
        let root = format!("/proc/{}/root", mapping.pid);
        let path: Arc<str> = path.into();
        self.files.push(SeenFile {
            mapped: MappedFile::find(&path, Path::new(&root)),
            is_spinning: names::is_spinning_file(&path),
            path: path.clone(),
            unlisted: 0,
        });
        self.by_path.insert(path, self.files.len() - 1);
        Some(self.files.len() - 1)
    }

    fn count(&mut self, place: Place) {
        let found = self.text(place.pid, place.address);
        let Some((start, text, file)) = found.and_then(|(at, it)| Some((at, it, it.file?))) else {
            self.unknown += 1;
            return;
        };
        let offset = (place.address - start).wrapping_add(text.offset);
        let one = Count {
            samples: 1,
            first: u64::from(place.pid == place.tid),
        };
        let seen = &mut self.files[file];
        let is_full = self.counts.len() >= PLACES_MAX;
        if !is_full || self.counts.contains_key(&(file, offset)) {
            self.counts.entry((file, offset)).or_default().add(one);
        } else {
            seen.unlisted += 1;
        }
        let thread = (place.tid, file, offset);
        if self.by_thread.len() < PLACES_MAX || self.by_thread.contains_key(&thread) {
            *self.by_thread.entry(thread).or_default() += 1;
        }
        if seen.is_spinning && !place.stack.is_empty() {
            self.stacks.keep(Stack {
                file,
                offset,
                place,
            });
        }
    }

    /// The program text at an address of a process, and where it begins.
    fn text(&self, pid: u32, address: u64) -> Option<(u64, Text)> {
        let mut process = self.processes.get(&pid)?;
        for _ in 0..FORKS_MAX {
            let before = process.texts.range(..=address).next_back();
            if let Some((start, text)) = before.filter(|(_, text)| address < text.end) {
                return Some((*start, *text));
            }
            process = self.processes.get(&process.parent?)?;
        }
        None
    }

    /// The program text of a process, with its files.
    fn maps(&self, pid: u32) -> Arc<Maps> {
        let texts = self.processes.get(&pid).into_iter();
        let texts = texts.flat_map(|process| &process.texts);
        Arc::new(Maps::of_texts(texts.filter_map(|(start, text)| {
            let file = &self.files[text.file?];
            let mapping = Mapping {
                start: *start,
                end: text.end,
                offset: text.offset,
                is_executable: true,
                path: file.path.clone(),
            };
            Some((mapping, file.mapped.clone()?))
        })))
    }
}

impl Stacks {
    fn keep(&mut self, stack: Stack) {
        let number = self.seen;
        self.seen += 1;
        if number.trailing_zeros() < self.stride {
            return;
        }
        self.kept.push((number, stack));
        if self.kept.len() > STACKS_MAX {
            self.stride += 1;
            let stride = self.stride;
            self.kept
                .retain(|(number, _)| number.trailing_zeros() >= stride);
        }
    }
}

/// By function and file, with the samples in loops that wait.
type Counts = HashMap<(Option<String>, usize), (Count, u64)>;

impl Resolver {
    /// The files and functions of samples. Programs are read for it.
    pub fn hot(&mut self, hot: &Hot) -> HotPlaces {
        let mut files: Vec<(&SeenFile, u64)> = hot.files.iter().zip(hot.totals()).collect();
        files.retain(|(_, samples)| *samples > 0);
        files.sort_by_key(|(file, samples)| (Reverse(*samples), file.path.clone()));
        let waiting = waiting(hot);
        let mut functions: Vec<_> = self
            .functions(hot, &waiting)
            .into_iter()
            .map(|((function, file), (count, waiting))| HotFunction {
                function,
                file: base_name(&hot.files[file].path),
                samples: count.samples,
                first: count.first,
                waiting,
            })
            .collect();
        functions.sort_by(|a, b| {
            let name = |it: &HotFunction| (it.file.clone(), it.function.clone());
            (b.samples, name(a)).cmp(&(a.samples, name(b)))
        });
        HotPlaces {
            samples: hot.samples(),
            unknown: hot.unknown,
            lost: hot.lost,
            halved: hot.halved,
            files: files
                .into_iter()
                .map(|(file, samples)| HotFile {
                    name: base_name(&file.path),
                    samples,
                })
                .collect(),
            functions,
            threads: threads(hot, &waiting),
        }
    }

    fn functions(&mut self, hot: &Hot, waiting: &HashSet<(usize, u64)>) -> Counts {
        let samples = hot.samples();
        let mut places: Vec<Vec<u64>> = vec![Vec::new(); hot.files.len()];
        for (file, offset) in hot.counts.keys() {
            places[*file].push(*offset);
        }
        let names: Vec<HashMap<u64, String>> = hot
            .files
            .iter()
            .zip(hot.totals())
            .zip(places)
            .map(|((file, of_file), offsets)| {
                let is_large = of_file * NAMED_FILE_PART >= samples;
                let is_named = hot.is_worth_reading() && is_large;
                let mapped = file.mapped.as_ref().filter(|_| is_named);
                let path = mapped.and_then(MappedFile::path);
                path.map_or_else(HashMap::new, |path| symbols::functions_at(path, &offsets))
            })
            .collect();
        let calls = called(hot, &self.files);
        let mut found = Counts::new();
        for ((file, offset), count) in &hot.counts {
            let called = calls.get(&(*file, *offset));
            let function = called.or_else(|| names[*file].get(offset)).cloned();
            let (all, waits) = found.entry((function, *file)).or_default();
            all.add(*count);
            if waiting.contains(&(*file, *offset)) {
                *waits += count.samples;
            }
        }
        found
    }
}

/// The places in loops in which threads do nothing but wait for others, by the code around them. Those with most
/// samples come first.
fn waiting(hot: &Hot) -> HashSet<(usize, u64)> {
    let mut found = HashSet::new();
    if !hot.is_worth_reading() || !cfg!(target_arch = "x86_64") {
        return found;
    }
    let mut places: Vec<_> = hot.counts.iter().collect();
    places.sort_by_key(|(place, count)| (Reverse(count.samples), **place));
    let mut opened: HashMap<usize, Option<File>> = HashMap::new();
    for ((file, offset), _) in places.into_iter().take(LOOPS_MAX) {
        let source = opened.entry(*file).or_insert_with(|| {
            let path = hot.files[*file].mapped.as_ref()?.path()?;
            File::open(path).ok()
        });
        let Some(source) = source else {
            continue;
        };
        let at = usize::try_from(*offset).map_or(spin::AROUND, |it| it.min(spin::AROUND));
        let mut code = [0; 2 * spin::AROUND];
        let read = source.read_at(&mut code, *offset - at as u64);
        if read.is_ok_and(|bytes| spin::waits_at(&code[..bytes], at)) {
            found.insert((*file, *offset));
        }
    }
    found
}

/// The samples of each thread, if some were in loops that wait.
fn threads(hot: &Hot, waiting: &HashSet<(usize, u64)>) -> Vec<HotThread> {
    if waiting.is_empty() {
        return Vec::new();
    }
    let mut found: HashMap<u32, HotThread> = HashMap::new();
    for ((tid, file, offset), samples) in &hot.by_thread {
        let thread = found.entry(*tid).or_insert(HotThread {
            tid: *tid,
            samples: 0,
            waiting: 0,
        });
        thread.samples += samples;
        if waiting.contains(&(*file, *offset)) {
            thread.waiting += samples;
        }
    }
    let mut threads: Vec<_> = found.into_values().collect();
    threads.sort_by_key(|it| (Reverse(it.samples), it.tid));
    threads.truncate(THREADS_MAX);
    threads
}

/// Of places in runtimes that spin, what was called of the runtime: the outermost of its functions that has a
/// name, in most of the stacks.
fn called(hot: &Hot, files: &Files) -> HashMap<(usize, u64), String> {
    let mut seen: HashMap<(usize, u64), BTreeMap<String, u64>> = HashMap::new();
    if !hot.is_worth_reading() {
        return HashMap::new();
    }
    for (_, stack) in &hot.stacks.kept {
        if let Some(name) = called_in(stack, hot, files) {
            let names = seen.entry((stack.file, stack.offset)).or_default();
            *names.entry(name).or_default() += 1;
        }
    }
    let most = |names: BTreeMap<String, u64>| {
        let found = names.into_iter().max_by_key(|(_, samples)| *samples);
        found.map(|(name, _)| name)
    };
    seen.into_iter()
        .filter_map(|(place, names)| Some((place, most(names)?)))
        .collect()
}

/// The function that the program called, or else the outermost one of the runtime that has a name: a call at
/// the end of a function leaves no frame.
fn called_in(stack: &Stack, hot: &Hot, files: &Files) -> Option<String> {
    let sample = Sample {
        instruction: stack.place.address,
        stack_pointer: stack.place.stack_pointer,
        stack: stack.place.stack.clone(),
        maps: hot.maps(stack.place.pid),
        ..Sample::default()
    };
    let runtime = &hot.files[stack.file].path;
    let mut walk = Walk::new(&sample, files);
    let mut outermost = None;
    for _ in 0..RUNTIME_FRAMES_MAX {
        let Some(frame) = walk.next(false) else {
            break;
        };
        if frame.path != *runtime {
            // The address is in the call.
            return match frame.elf.call_before(frame.address.wrapping_add(1)) {
                Some(Callee::Name(name)) => Some(name.to_owned()),
                _ => outermost,
            };
        }
        outermost = frame.elf.function_at(frame.address).or(outermost);
    }
    outermost
}

fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(pid: u32, start: u64, bytes: u64, path: &str) -> TextMapping {
        TextMapping {
            pid,
            start,
            bytes,
            offset: 0x1000,
            path: path.into(),
        }
    }

    fn place(pid: u32, tid: u32, address: u64) -> Place {
        Place {
            pid,
            tid,
            address,
            ..Place::default()
        }
    }

    fn add(hot: &mut Hot, texts: Vec<TextMapping>, places: Vec<Place>) {
        hot.add(texts, Sampled { places, lost: 0 });
    }

    fn files(hot: &Hot) -> Vec<(String, u64)> {
        let found = Resolver::default().hot(hot);
        found
            .files
            .into_iter()
            .map(|it| (it.name, it.samples))
            .collect()
    }

    #[test]
    fn samples_count_for_the_file_that_is_mapped_there() {
        let mut hot = Hot::default();
        let maps = vec![
            mapping(7, 0x1000, 0x1000, "/none/program"),
            mapping(7, 0x3000, 0x1000, "/none/lib.so"),
            mapping(7, 0x5000, 0x1000, "//anon"),
        ];
        let at = [0x1000, 0x1fff, 0x2000, 0x3001, 0x5001, 0xfff];
        add(&mut hot, maps, at.map(|at| place(7, 8, at)).to_vec());
        let found = files(&hot);
        assert_eq!(found, [("program".into(), 2), ("lib.so".into(), 1)]);
        assert_eq!((hot.samples(), hot.unknown), (6, 3));
        // Another library takes the place of both.
        let over = vec![mapping(7, 0x0, 0x10000, "/none/other.so")];
        add(&mut hot, over, vec![place(7, 7, 0x3001)]);
        assert_eq!(
            files(&hot)[1..],
            [("lib.so".into(), 1), ("other.so".into(), 1)]
        );
        let found = Resolver::default().hot(&hot);
        let first: u64 = found.functions.iter().map(|it| it.first).sum();
        assert_eq!(first, 1);
    }

    #[test]
    fn a_mapping_replaces_only_what_it_covers() {
        let mut hot = Hot::default();
        let maps = vec![
            mapping(7, 0x1000, 0x3000, "/none/program"),
            mapping(7, 0x2000, 0x1000, "//anon"),
            mapping(7, 0x1800, 0, "/none/empty"),
            mapping(7, u64::MAX, 2, "/none/beyond"),
        ];
        let at = [0x1fff, 0x2000, 0x2fff, 0x3000];
        add(&mut hot, maps, at.map(|at| place(7, 8, at)).to_vec());
        let mut places: Vec<u64> = hot.counts.keys().map(|it| it.1).collect();
        places.sort_unstable();
        assert_eq!((places, hot.unknown), (vec![0x1fff, 0x3000], 2));
    }

    #[test]
    fn a_forked_process_has_the_text_of_its_parent_until_it_maps_its_own() {
        let mut hot = Hot::default();
        add(
            &mut hot,
            vec![mapping(7, 0x1000, 0x1000, "/none/shell")],
            vec![],
        );
        hot.forked(7, 8);
        hot.forked(8, 9);
        add(&mut hot, vec![], vec![place(9, 9, 0x1001)]);
        let own = vec![mapping(9, 0x1000, 0x1000, "/none/tool")];
        add(
            &mut hot,
            own,
            vec![place(9, 9, 0x1001), place(10, 10, 0x1001)],
        );
        assert_eq!(files(&hot), [("shell".into(), 1), ("tool".into(), 1)]);
        assert_eq!(hot.unknown, 1);
        // The birth of a process may be read after what it has mapped.
        hot.forked(8, 9);
        add(&mut hot, vec![], vec![place(9, 9, 0x1001)]);
        assert_eq!(files(&hot)[0], ("tool".into(), 2));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut hot = Hot::default();
        for pid in 1..2000 {
            add(
                &mut hot,
                vec![mapping(pid, 0x1000, 0x1000, "/none/p")],
                vec![],
            );
        }
        assert_eq!(
            (hot.processes.len(), hot.order.len()),
            (PROCESSES_MAX, PROCESSES_MAX)
        );
        let whole = mapping(1, 0, 1 << 40, "/none/libgomp.so.1");
        add(&mut hot, vec![whole], vec![]);
        for at in 0..100_000 {
            let stack = vec![0; 8];
            let place = Place {
                stack,
                ..place(1, 1, at)
            };
            add(&mut hot, vec![], vec![place]);
        }
        assert_eq!(hot.counts.len(), PLACES_MAX);
        assert!(hot.stacks.kept.len() <= STACKS_MAX && hot.stacks.kept.len() > STACKS_MAX / 4);
        assert_eq!(files(&hot), [("libgomp.so.1".into(), 100_000)]);
    }

    #[inline(never)]
    fn spins_here() -> usize {
        spins_here as *const () as usize
    }

    #[test]
    fn halved_samples_are_as_if_half_of_the_time_had_been_sampled() {
        let mut hot = Hot::default();
        let maps = vec![mapping(7, 0x1000, 0x1000, "/none/program")];
        let at = [0x1000, 0x1000, 0x1000, 0x1010, 0x1010, 0x9000, 0x9000];
        add(&mut hot, maps, at.map(|at| place(7, 7, at)).to_vec());
        // Of an odd number the greater half.
        hot.halve(|samples| samples.div_ceil(2));
        let found = Resolver::default().hot(&hot);
        assert_eq!((found.samples, found.unknown, found.halved), (4, 1, 1));
        assert_eq!(files(&hot), [("program".into(), 3)]);
        assert_eq!(
            (found.functions[0].samples, found.functions[0].first),
            (3, 3)
        );
        hot.halve(|_| 0);
        assert!(hot.is_empty());
        assert_eq!(files(&hot), []);
    }

    #[test]
    fn functions_have_names_once_there_are_enough_samples() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let maps = Maps::new(&text, Path::new("/"));
        let (own, _) = maps.text_at(spins_here() as u64).unwrap();
        let pid = std::process::id();
        let mapped = TextMapping {
            pid,
            start: own.start,
            bytes: own.end - own.start,
            offset: own.offset,
            path: Path::new(&*own.path).into(),
        };
        let mut hot = Hot::default();
        add(&mut hot, vec![mapped], vec![]);
        let at = place(pid, 1, spins_here() as u64);
        add(&mut hot, vec![], vec![at.clone(); 9]);
        let found = Resolver::default().hot(&hot);
        assert_eq!(found.functions[0].function, None);
        add(&mut hot, vec![], vec![at]);
        let found = Resolver::default().hot(&hot);
        let name = found.functions[0].function.as_deref().unwrap();
        assert!(name.ends_with("::spins_here"), "{name}");
        assert_eq!(found.functions[0].samples, 10);
        // Three samples of a quarter of the time stand for twelve.
        hot.halve(|samples| samples.div_ceil(2));
        hot.halve(|samples| samples.div_ceil(2));
        let found = Resolver::default().hot(&hot);
        assert_eq!((found.samples, found.halved), (3, 2));
        assert!(found.functions[0].function.is_some());
    }

    #[test]
    fn threads_are_listed_if_some_wait_in_loops() {
        // mov (%rdi),%eax; test %eax,%eax; je: waits. imul: works.
        let code = [0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa, 0x48, 0x0f, 0xaf, 0xc7];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, code).unwrap();
        let text = TextMapping {
            offset: 0,
            path: path.clone(),
            ..mapping(7, 0x1000, 0x1000, "")
        };
        let mut hot = Hot::default();
        add(&mut hot, vec![text], vec![place(7, 8, 0x1006); 20]);
        assert_eq!(Resolver::default().hot(&hot).threads, []);
        add(&mut hot, vec![], vec![place(7, 9, 0x1002); 12]);
        add(&mut hot, vec![], vec![place(7, 9, 0x1006); 3]);
        let found = Resolver::default().hot(&hot);
        let threads: Vec<_> = found
            .threads
            .iter()
            .map(|it| (it.tid, it.samples, it.waiting))
            .collect();
        assert_eq!(threads, [(8, 20, 0), (9, 15, 12)]);
        let waiting: u64 = found.functions.iter().map(|it| it.waiting).sum();
        assert_eq!(waiting, 12);
        // A long trial of which little was sampled.
        for _ in 0..4 {
            hot.halve(|samples| samples.div_ceil(2));
        }
        let found = Resolver::default().hot(&hot);
        assert_eq!((found.samples, found.halved), (3, 4));
        let waiting: u64 = found.functions.iter().map(|it| it.waiting).sum();
        assert_eq!(waiting, 1);
    }
}
