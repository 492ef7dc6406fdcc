//! Names the frames of samples, and counts them by the place in the program that waited.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use crate::capture::{Python, Sample};
use crate::cpython::PythonFrame;
use crate::elf::{Elf, Named};
use crate::names::{self, Primitive};
use crate::samples::Samples;
use crate::unwind::{Files, Found, Frame, Walk};

/// Where the owner of a mutex of glibc stands, from the futex word on.
const OWNER_AT: usize = 8;
/// Most callers that a site has, from the nearest on.
const CALLERS_MAX: usize = 4;
/// As records name them.
const CPYTHON: &str = "cpython";
const GLOBAL_LOCK: &str = "GIL";
/// Waits until the new thread runs, and meanwhile for the interpreter.
const STARTS_THREAD: &str = "Thread.start";

/// The sites of the waits of some threads. Counts are of readings: of one thread at one moment each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sites {
    /// Those at a site that is known, and those that are not.
    pub readings: u64,
    pub unknown: u64,
    /// Those that were dropped because the thread ran meanwhile.
    pub torn: u64,
    /// Those that were left out, so that sampling keeps to its share and does not make a program wait.
    pub skipped: u64,
    /// Most readings first.
    pub found: Vec<Site>,
}

/// A place in a program where threads waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    pub call: &'static str,
    pub primitive: Primitive,
    /// The function of the library that it called.
    pub operation: Option<String>,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The program or the library that it is in, and where: after the call.
    pub module: String,
    pub offset: u64,
    pub found: Found,
    /// The runtime that says so itself, of a language that is interpreted.
    pub runtime: Option<&'static str>,
    /// The variable that is the lock, or has it; the global interpreter lock of Python.
    pub lock: Option<String>,
    pub readings: u64,
    /// The threads that were seen here, and in how many readings.
    pub threads: BTreeMap<u32, u64>,
    /// The numbers of the samples that saw them.
    pub samples: BTreeSet<u64>,
    /// The threads that had the lock meanwhile, and how often they were seen so, where the lock says it.
    pub holders: HashMap<u32, u64>,
    /// The functions that called it, the nearest first.
    pub callers: Vec<String>,
}

/// What one sample says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wait {
    primitive: Primitive,
    operation: Option<String>,
    named: Named,
    module: Arc<str>,
    offset: u64,
    found: Found,
    runtime: Option<&'static str>,
    callers: Vec<String>,
    says_owner: bool,
}

/// What the stack alone says of a sample.
struct NativeWait {
    found: Option<Wait>,
    /// By the libraries that it went through.
    primitive: Option<Primitive>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    call: &'static str,
    primitive: Primitive,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    module: Arc<str>,
    /// Of a function without a name.
    offset: Option<u64>,
    lock: Option<String>,
}

/// Finds sites by the files of programs, each of which it reads once.
#[derive(Debug, Default)]
pub struct Resolver {
    pub(crate) files: Files,
    names: Names,
    barriers: Barriers,
}

/// Functions that wait at a condition, and whether they are barriers: by where they wait.
#[derive(Debug, Default)]
struct Barriers(HashMap<(*const Elf, u64), bool>);

impl Barriers {
    /// What is waited at. A function that also wakes all that wait at its condition is a barrier: who comes last
    /// wakes the others. A lock is given back elsewhere.
    fn primitive(
        &mut self,
        primitive: Option<Primitive>,
        frame: &Frame,
        named: &Named,
    ) -> Option<Primitive> {
        let function = named.function.as_deref();
        let (Some(Primitive::Condition), Some(function)) = (primitive, function) else {
            return primitive;
        };
        let key = (Rc::as_ptr(&frame.elf), frame.address);
        let is_barrier = *self
            .0
            .entry(key)
            .or_insert_with(|| frame.elf.wakes_all(frame.address, function));
        Some(match is_barrier {
            true => Primitive::Barrier,
            false => Primitive::Condition,
        })
    }
}

type Names = HashMap<(*const Elf, u64), Rc<FrameNames>>;

/// The functions of a frame, the innermost one first, and what they say.
#[derive(Debug)]
struct FrameNames {
    /// The file is a library of the system.
    is_of_system: bool,
    functions: Vec<FrameName>,
}

#[derive(Debug)]
struct FrameName {
    named: Named,
    is_library: bool,
    /// Of a library: what is waited at, if it says that.
    primitive: Option<Primitive>,
}

impl FrameNames {
    fn of(frame: &Frame) -> Self {
        let is_of_system = names::is_system_file(&frame.path);
        let by_symbol = |function| {
            vec![Named {
                function,
                ..Named::default()
            }]
        };
        let named = if is_of_system {
            by_symbol(frame.elf.function_at(frame.address))
        } else if let Some(function) = frame.elf.closed_at(frame.address) {
            by_symbol(Some(function))
        } else {
            frame.elf.named(frame.address)
        };
        let said = |named: Named| {
            let is_library = is_of_system || names::is_of_library(&named);
            let primitive = is_library.then(|| Primitive::of_function(&named)).flatten();
            FrameName {
                named,
                is_library,
                primitive,
            }
        };
        Self {
            is_of_system,
            functions: named.into_iter().map(said).collect(),
        }
    }

    /// Whether the innermost function is one of a library.
    fn begins_in_library(&self) -> bool {
        self.functions.first().is_some_and(|it| it.is_library)
    }
}

impl Resolver {
    /// The sites of samples.
    pub fn resolve(&mut self, samples: &Samples) -> Sites {
        let mut sites = Sites {
            torn: samples.torn,
            skipped: samples.skipped,
            ..Sites::default()
        };
        let mut found: HashMap<Key, Site> = HashMap::new();
        for sample in samples.iter() {
            let readings = 1 + sample.repeated;
            match self.site_of(sample) {
                Some(site) => {
                    sites.readings += readings;
                    add(&mut found, site);
                }
                None => sites.unknown += readings,
            }
        }
        sites.found = found.into_values().collect();
        sites.found.sort_by(|a, b| {
            let place = |it: &Site| (it.module.clone(), it.offset);
            (b.readings, place(a)).cmp(&(a.readings, place(b)))
        });
        sites
    }

    /// The site of one sample, if it is known.
    pub fn site_of(&mut self, sample: &Sample) -> Option<Site> {
        let wait = self.wait_of(sample)?;
        let readings = 1 + sample.repeated;
        let word = sample.word;
        let lock = match sample.python.is_global_lock() {
            true => Some(GLOBAL_LOCK.into()),
            false => word.and_then(|it| self.files.variable(&sample.maps, it.address)),
        };
        let owner = word.filter(|_| wait.says_owner).and_then(|it| {
            let bytes: [u8; 4] = it.bytes?[OWNER_AT..OWNER_AT + 4].try_into().ok()?;
            // 0: it was given back, and nobody has taken it yet.
            Some(u32::from_le_bytes(bytes)).filter(|owner| *owner != 0)
        });
        Some(Site {
            call: sample.call,
            primitive: wait.primitive,
            operation: wait.operation,
            function: wait.named.function,
            file: wait.named.file,
            line: wait.named.line,
            module: wait.module.to_string(),
            offset: wait.offset,
            found: wait.found,
            runtime: wait.runtime,
            lock,
            readings,
            threads: BTreeMap::from([(sample.tid, readings)]),
            samples: BTreeSet::from([sample.number]),
            holders: owner.map(|owner| (owner, readings)).into_iter().collect(),
            callers: wait.callers,
        })
    }

    /// The innermost function that is the program's own, with what it called and who called it.
    fn wait_of(&mut self, sample: &Sample) -> Option<Wait> {
        let Python::Frames { frames, .. } = &sample.python else {
            return self.native_wait(sample).found;
        };
        if sample.python.is_global_lock() {
            return python_wait(frames, Some(Primitive::Mutex), None);
        }
        // A library in another language that Python called waits, or the interpreter itself.
        let native = self.native_wait(sample);
        match native.found.filter(|it| it.named.function.is_some()) {
            Some(mut found) => {
                let called = frames.iter().map(|it| it.code.function.clone());
                found.callers.extend(called);
                found.callers.truncate(CALLERS_MAX);
                Some(found)
            }
            None => python_wait(frames, None, native.primitive),
        }
    }

    /// The same by the stack alone; of a thread that runs Python, up to its interpreter.
    fn native_wait(&mut self, sample: &Sample) -> NativeWait {
        let mut below: Vec<String> = Vec::new();
        let mut primitive = None;
        let mut says_owner = false;
        let mut found: Option<Wait> = None;
        let mut fallback: Option<Frame> = None;
        let wait = |frame: &Frame, named, below: &[String], primitive: Option<_>, says_owner| {
            let known = |it: &&String| !it.is_empty();
            Wait {
                primitive: primitive.unwrap_or(Primitive::Other),
                operation: below.iter().rev().find(known).cloned(),
                named,
                module: frame.path.clone(),
                offset: frame.address,
                found: frame.found,
                runtime: None,
                callers: Vec::new(),
                says_owner,
            }
        };
        let mut walk = Walk::new(sample, &self.files);
        // The site may be a function of the library that has no name: who calls it tells.
        let mut is_doubtful = false;
        // For who called the site, no stack is searched.
        'frames: while let Some(frame) = walk.next(found.is_none() || is_doubtful) {
            let frame = &frame;
            let key = (Rc::as_ptr(&frame.elf), frame.address);
            let names = self.names.entry(key);
            let names = names.or_insert_with(|| Rc::new(FrameNames::of(frame)));
            let names = Rc::clone(names);
            let is_within = !names.is_of_system && names.begins_in_library();
            if std::mem::take(&mut is_doubtful) && is_within {
                found = None;
            }
            if names.functions.is_empty() && found.is_none() {
                found = Some(wait(frame, Named::default(), &below, primitive, says_owner));
                is_doubtful = fallback.is_some();
                continue;
            }
            for name in &names.functions {
                let named = &name.named;
                match &mut found {
                    None if name.is_library => {
                        let function = named.function.clone().unwrap_or_default();
                        // The outermost one that says it: a condition takes its mutex again inside.
                        primitive = name.primitive.or(primitive);
                        // By the function of the C library that its caller named, whatever that called.
                        if names.is_of_system {
                            says_owner = names::takes_glibc_mutex(&frame.path, &function);
                        } else {
                            fallback.get_or_insert_with(|| frame.clone());
                        }
                        below.push(function);
                    }
                    None => {
                        let named = named.clone();
                        let primitive = self.barriers.primitive(primitive, frame, &named);
                        found = Some(wait(frame, named, &below, primitive, says_owner));
                    }
                    Some(found) if found.callers.len() == CALLERS_MAX => break 'frames,
                    Some(found) => found.callers.extend(named.function.clone()),
                }
            }
        }
        // A program of libraries alone: the innermost function beyond those of the system.
        let found = found.or_else(|| {
            // Its functions of Python are known.
            let is_python = sample.python.interpreter().is_some();
            let frame = fallback.filter(|_| !is_python)?;
            let named = frame.elf.named(frame.address).into_iter().next();
            let named = named.unwrap_or_default();
            Some(wait(&frame, named, &below, primitive, says_owner))
        });
        NativeWait { found, primitive }
    }
}

/// The innermost function of Python that is not in its library of locks and of what is made of them. Locks that
/// the interpreter makes itself are semaphores, or mutexes with conditions.
fn python_wait(
    frames: &[PythonFrame],
    known: Option<Primitive>,
    native: Option<Primitive>,
) -> Option<Wait> {
    let own = |it: &PythonFrame| !names::is_of_python_locks(&it.code.file);
    let at = frames.iter().position(own);
    let library = &frames[..at.unwrap_or(frames.len())];
    // Of waits for the interpreter itself the library says little, but that a thread is started.
    let starts = library.iter().find(|it| it.code.function == STARTS_THREAD);
    let operation = starts
        .or(library.last().filter(|_| known.is_none()))
        .filter(|_| at.is_some());
    let named = |it: &PythonFrame| Primitive::of_python(&it.code.function);
    let of_interpreter = match native {
        Some(native @ (Primitive::Join | Primitive::FileLock)) => native,
        // A thread of the library that has no work.
        _ if at.is_none() => Primitive::Other,
        _ => Primitive::Mutex,
    };
    let primitive = known.or_else(|| library.iter().rev().find_map(named));
    let frame = frames.get(at.unwrap_or(0))?;
    let code = &frame.code;
    let callers = frames.iter().skip(at.unwrap_or(0) + 1);
    Some(Wait {
        primitive: primitive.unwrap_or(of_interpreter),
        operation: operation.map(|it| it.code.function.clone()),
        named: Named {
            function: Some(code.function.clone()),
            file: Some(code.file.clone()),
            line: code.line_at(frame.offset),
        },
        module: code.file.as_str().into(),
        offset: u64::from(frame.offset),
        found: Found::Cfi,
        runtime: Some(CPYTHON),
        callers: callers
            .take(CALLERS_MAX)
            .map(|it| it.code.function.clone())
            .collect(),
        says_owner: false,
    })
}

fn add(found: &mut HashMap<Key, Site>, site: Site) {
    let key = Key {
        call: site.call,
        primitive: site.primitive,
        function: site.function.clone(),
        file: site.file.clone(),
        line: site.line,
        module: site.module.as_str().into(),
        offset: site.function.is_none().then_some(site.offset),
        lock: site.lock.clone(),
    };
    let Some(known) = found.get_mut(&key) else {
        found.insert(key, site);
        return;
    };
    known.readings += site.readings;
    known.found = known.found.max(site.found);
    for (tid, readings) in site.threads {
        *known.threads.entry(tid).or_default() += readings;
    }
    known.samples.extend(site.samples);
    for (owner, readings) in site.holders {
        *known.holders.entry(owner).or_default() += readings;
    }
    let same = known
        .callers
        .iter()
        .zip(&site.callers)
        .take_while(|(a, b)| a == b)
        .count();
    known.callers.truncate(same);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpython::Code;

    fn frames(functions: &[(&str, &str)]) -> Vec<PythonFrame> {
        functions
            .iter()
            .map(|&(function, file)| PythonFrame {
                code: Arc::new(Code {
                    function: function.into(),
                    file: file.into(),
                    first_line: 1,
                    lines: Vec::new(),
                }),
                offset: 0,
            })
            .collect()
    }

    #[test]
    fn a_wait_for_the_interpreter_that_starts_a_thread_says_so() {
        const LIBRARY: &str = "/usr/lib/python3.11/threading.py";
        let waits = [("Condition.wait", LIBRARY), ("Event.wait", LIBRARY)];
        let started = [
            &waits[..],
            &[("Thread.start", LIBRARY), ("main", "/app.py")],
        ]
        .concat();
        let pool = "/usr/lib/python3.11/concurrent/futures/thread.py";
        let submitted = [
            &started[..3],
            &[("ThreadPoolExecutor.submit", pool), ("main", "/app.py")],
        ]
        .concat();
        let other = [&waits[..], &[("main", "/app.py")]].concat();
        let of = |frames: &[PythonFrame], known| {
            let wait = python_wait(frames, known, None).expect("a function of the program");
            assert_eq!(wait.named.function.as_deref(), Some("main"));
            wait.operation
        };
        let global = Some(Primitive::Mutex);
        for stack in [&started, &submitted] {
            assert_eq!(of(&frames(stack), global).as_deref(), Some("Thread.start"));
            assert_eq!(of(&frames(stack), None).as_deref(), Some("Thread.start"));
        }
        assert_eq!(of(&frames(&other), global), None);
        assert_eq!(of(&frames(&other), None).as_deref(), Some("Event.wait"));
    }
}
