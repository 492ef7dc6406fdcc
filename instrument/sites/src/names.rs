//! Which functions belong to a program, and which to the libraries that its locks are from.

use crate::elf::Named;

/// Files of these names are libraries of the system. No user looks for a line in them.
const SYSTEM_FILES: [&str; 16] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "ld-",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libm.so",
    "librt",
    "libdl",
    "libgomp",
    "libomp",
    "libiomp",
    "libtbb",
];
/// Runtimes whose threads spin while they wait: those of OpenMP.
const SPINNING_FILES: [&str; 3] = ["libgomp", "libomp", "libiomp"];
/// Functions of these names are locks and what they are made of.
const LIBRARY_NAMES: [&str; 21] = [
    "std::",
    "core::",
    "alloc::",
    "__gnu_cxx::",
    "__gthread_",
    "parking_lot::",
    "parking_lot_core::",
    "lock_api::",
    "once_cell::",
    "boost::",
    "absl::",
    "__pthread_",
    "___pthread_",
    "pthread_",
    "__lll_",
    "__futex_abstimed_",
    "__new_sem_",
    // Of Go.
    "sync.",
    "runtime.",
    "internal/sync.",
    "internal/runtime/",
];
/// Modules of Rust's library that call nothing of a program, or only by an address that another thread left: its
/// locks, and where threads start.
const RUST_CLOSED: [&str; 7] = [
    "std::sys::sync::mutex::",
    "std::sys::sync::rwlock::",
    "std::sys::sync::condvar::",
    "std::sys::sync::thread_parking::",
    "std::sys::pal::unix::futex::",
    "std::sys::thread::",
    "std::sys::pal::unix::thread::",
];
/// Packages of Go's library that have locks. They are compiled before those of a program, and know none of them.
const GO_CLOSED: [&str; 4] = ["sync.", "runtime.", "internal/sync.", "internal/runtime/"];
/// What a compiler of C adds to the name of a function that it makes another one of: `sync.part.0` is not Go's.
const CLONES: [&str; 6] = ["part", "constprop", "isra", "cold", "lto_priv", "llvm"];
/// Functions of a C library that a statically linked program has, too.
const LIBRARY_FUNCTIONS: [&str; 16] = [
    "syscall",
    "futex_wait",
    "__internal_syscall_cancel",
    "__syscall_cancel",
    "__syscall_cancel_arch",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "do_futex_wait",
    "mtx_lock",
    "cnd_wait",
    "flock",
    "fcntl",
    "fcntl64",
    "__libc_fcntl64",
    "__fcntl64_nocancel",
];
/// The locks that PostgreSQL and MariaDB make themselves: what takes one is the place, as with any library.
const SERVER_FUNCTIONS: [&str; 11] = [
    "ConditionVariableSleep",
    "ConditionVariableTimedSleep",
    "LWLockAcquire",
    "LWLockAcquireOrWait",
    "LWLockWaitForVar",
    "LockAcquire",
    "LockAcquireExtended",
    "PGSemaphoreLock",
    "ProcSleep",
    "WaitEventSetWait",
    "WaitLatch",
];
const SERVER_NAMES: [&str; 7] = [
    "MDL_wait::",
    "srw_lock_impl<",
    "srw_mutex_impl<",
    "ssux_lock_impl<",
    "psi_mutex_",
    "psi_rwlock_",
    "psi_cond_",
];
/// Sources of these libraries.
const LIBRARY_SOURCES: [&str; 6] = [
    "/rustlib/src/rust/library/",
    "/include/c++/",
    "/parking_lot-",
    "/parking_lot_core-",
    "/lock_api-",
    "/include/boost/",
];

/// Modules of Python's library that wait for others: locks, and what is made of them.
const PYTHON_LOCKS: [&str; 5] = [
    "threading.py",
    "queue.py",
    "_weakrefset.py",
    "concurrent/futures/",
    "multiprocessing/",
];
/// Where Python keeps its library, before the number of the version.
const PYTHON_LIBRARY: &str = "/python3.";
/// Modules of that library that are compiled.
const PYTHON_COMPILED: &str = "/lib-dynload/";

/// What a thread waits at, by the functions of libraries that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    Mutex,
    ReaderWriterLock,
    Condition,
    Semaphore,
    Barrier,
    /// The end of another thread.
    Join,
    /// What another thread does once for all.
    Once,
    FileLock,
    Other,
}

impl Primitive {
    /// As a record names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReaderWriterLock => "reader_writer_lock",
            Self::Condition => "condition",
            Self::Semaphore => "semaphore",
            Self::Barrier => "barrier",
            Self::Join => "join",
            Self::Once => "once",
            Self::FileLock => "file_lock",
            Self::Other => "other",
        }
    }

    /// By the name of a function of a library, or else by that of its source, if they say it.
    pub fn of_function(named: &Named) -> Option<Self> {
        let file = named.file.as_deref().and_then(|it| it.rsplit('/').next());
        let names = [named.function.as_deref(), file];
        names.into_iter().flatten().find_map(Self::of)
    }

    /// By the name of a function of Python's library: at its end a program waits for its threads.
    pub fn of_python(function: &str) -> Option<Self> {
        match function {
            "_shutdown" | "_python_exit" | "Thread._wait_for_tstate_lock" => Some(Self::Join),
            _ => Self::of(function),
        }
    }

    fn of(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let has = |word: &str| lower.contains(word);
        Some(match () {
            () if has("scoped_lock") => Self::Mutex,
            // Rust's scope waits for its threads.
            () if has("join") || has("scoped") || has("waitgroup") => Self::Join,
            // Any closure is called through a function of this name.
            () if has("guard_acquire") || (has("once") && !has("fnonce")) => Self::Once,
            () if has("cond") || has("cnd_") => Self::Condition,
            () if has("rwlock")
                || has("rwmutex")
                || has("shared_mutex")
                || has("lwlock")
                || has("srw_lock")
                || has("ssux_lock") =>
            {
                Self::ReaderWriterLock
            }
            () if has("barrier") => Self::Barrier,
            () if has("sem_") || has("semaphore") => Self::Semaphore,
            () if has("mutex") || has("mtx_") => Self::Mutex,
            // PostgreSQL's lock of a table, a row or a transaction.
            () if has("lockacquire") || has("procsleep") => Self::Mutex,
            () if has("flock") || has("fcntl") => Self::FileLock,
            () => return None,
        })
    }
}

/// Whether a file is a library of the system, by its name.
pub fn is_system_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_of_system = SYSTEM_FILES.iter().any(|it| name.starts_with(it));
    name.contains(".so") && (is_of_system || path.contains(PYTHON_COMPILED))
}

/// Whether a file is a runtime whose threads spin while they wait, by its name.
pub fn is_spinning_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.contains(".so") && SPINNING_FILES.iter().any(|it| name.starts_with(it))
}

/// Whether a source is one of Python's library of locks, or of what loads modules.
pub fn is_of_python_locks(file: &str) -> bool {
    let within = |(_, rest): (&str, &str)| {
        let (_version, inside) = rest.split_once('/')?;
        Some(PYTHON_LOCKS.iter().any(|it| match it.ends_with('/') {
            true => inside.starts_with(it),
            false => inside == *it,
        }))
    };
    let found = file.split_once(PYTHON_LIBRARY).and_then(within);
    found.unwrap_or_else(|| file.starts_with("<frozen importlib"))
}

/// Whether a function belongs to a library of locks, or to what such a library is made of.
pub fn is_of_library(named: &Named) -> bool {
    let of_source = named.file.as_deref().is_some_and(|file| {
        let of_rust = file.starts_with("/rustc/") && file.contains("/library/");
        of_rust || LIBRARY_SOURCES.iter().any(|it| file.contains(it))
    });
    of_source || named.function.as_deref().is_some_and(is_name_of_library)
}

/// Whether a function of a library of locks has nothing of a program inside, neither inlined nor by a type
/// parameter, by its symbol and by the name that this is.
pub fn is_closed(symbol: &str, function: &str) -> bool {
    let begins = |name: &str, names: &[&str]| names.iter().any(|it| name.starts_with(it));
    // Only symbols of this kind say type parameters: `std::f::<T>`, `<std::Type<T>>::f`.
    let of_rust = symbol.starts_with("_R") && {
        let bare = function.strip_prefix('<').unwrap_or(function);
        begins(bare, &RUST_CLOSED) && !bare.contains('<') && !bare.contains(" as ")
    };
    of_rust || begins(symbol, &GO_CLOSED) && !symbol.contains('[') && !is_of_c(symbol)
}

/// Whether a function that has a name like those of Go's packages is one that a compiler of C made of another one.
fn is_of_c(function: &str) -> bool {
    let is_like_go = GO_CLOSED.iter().any(|it| function.starts_with(it));
    let mut parts = function.split('.');
    is_like_go && parts.nth(1).is_some_and(|it| CLONES.contains(&it))
}

fn is_name_of_library(function: &str) -> bool {
    // `<std::sync::Mutex<T>>::lock`, `<&T as core::…>::…`, `void std::__invoke…`.
    let bare = function
        .trim_start_matches(['<', '&', '*'])
        .trim_start_matches("dyn ");
    let names = LIBRARY_NAMES.iter().chain(&SERVER_NAMES);
    let functions = LIBRARY_FUNCTIONS.iter().chain(&SERVER_FUNCTIONS);
    names.into_iter().any(|it| bare.starts_with(it)) && !is_of_c(bare)
        || functions.into_iter().any(|it| *it == bare)
}

/// Whether a function takes a mutex as glibc makes them: behind the futex word stands who has it.
pub fn takes_glibc_mutex(path: &str, function: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_glibc = name == "libc.so.6" || name == "libpthread.so.0" || name.starts_with("libc-2.");
    is_glibc
        && matches!(
            function,
            "pthread_mutex_lock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(function: &str, file: &str) -> Named {
        Named {
            function: (!function.is_empty()).then(|| function.into()),
            file: (!file.is_empty()).then(|| file.into()),
            line: Some(1),
        }
    }

    #[test]
    fn a_function_is_closed_that_has_nothing_of_a_program() {
        let is_closed = |symbol| is_closed(symbol, &crate::elf::demangled(symbol));
        for closed in [
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
            "_RNvNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB7_6Thread3new12thread_start",
            "runtime.gopark",
            "internal/sync.(*Mutex).lockSlow",
            "sync.runtime_SemacquireRWMutexR",
        ] {
            assert!(is_closed(closed), "{closed}");
        }
        for open in [
            // The name says no type parameters, and may have some.
            "_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE",
            // It calls a function of the program.
            "_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal",
            // With a type of the program: its lock, a function, a trait.
            "_RNvMNtNtNtCs1_3std3sys4sync5mutexINtB2_5MutexNtCs2_3app4ItemE4lock",
            "_RINvNtNtNtCs1_3std3sys4sync5mutex4withNtCs2_3app4ItemEB0_",
            "_RNvXNtNtNtCs1_3std3sys4sync5mutexNtB2_5MutexNtCs2_3app5Trait3act",
            "_RNvNtCs1_3app5mutex4lock",
            "sync.OnceValue[go.shape.int].func1",
            "main.(*Table).Lock",
            "syncer.Run",
            // A compiler of C made them of `sync` and `runtime`, functions of a program.
            "sync.part.0",
            "sync.cold",
            "runtime.constprop.0.isra.0",
            "pthread_mutex_lock",
        ] {
            let name = crate::elf::demangled(open);
            assert!(!name.starts_with("_"), "{name}");
            assert!(!is_closed(open), "{open}: {name}");
        }
    }

    #[test]
    fn locks_are_told_from_what_takes_them() {
        for (function, file) in [
            ("std::mutex::lock()", "/usr/include/c++/12/bits/std_mutex.h"),
            ("__gthread_mutex_lock(pthread_mutex_t*)", ""),
            ("std::lock_guard<std::mutex>::lock_guard(std::mutex&)", ""),
            (
                "lock<u64>",
                "/rustc/4a4ef493e3a1488c6e321570238084b38948f6db/library/std/src/sync/poison/mutex.rs",
            ),
            ("<std::sync::poison::mutex::Mutex<T>>::lock", ""),
            (
                "lock_slow",
                "/home/me/.cargo/registry/src/index/parking_lot-0.12.5/src/raw_mutex.rs",
            ),
            ("pthread_mutex_lock", ""),
            ("syscall", ""),
            ("internal/sync.(*Mutex).lockSlow", ""),
            ("sync.(*Mutex).Lock", "/usr/local/go/src/sync/mutex.go"),
            ("runtime.gopark", ""),
            ("LWLockAcquire", ""),
            ("ssux_lock_impl<true>::wait(unsigned int)", ""),
            ("std::mutex::lock() [clone .part.0]", ""),
            ("MDL_wait::timed_wait(MDL_context_owner*)", ""),
        ] {
            assert!(is_of_library(&named(function, file)), "{function}");
        }
        for (function, file) in [
            ("Table::add(int)", "/home/me/table.cc"),
            ("stdlib_table_add", ""),
            ("sem_release_all", ""),
            ("futex_lock", "/home/me/lock.c"),
            ("my::core::take", ""),
            ("main.(*shelf).addRight", "/home/me/shelf.go"),
            ("LWLockAcquireTable", ""),
            ("sync.part.0", ""),
            ("", "/home/me/lock.c"),
        ] {
            assert!(!is_of_library(&named(function, file)), "{function}");
        }
        assert!(is_system_file("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(is_system_file("/lib64/ld-linux-x86-64.so.2"));
        assert!(!is_system_file("/opt/app/libcache.so"));
        assert!(!is_system_file("/opt/app/ld-tool"));
    }

    #[test]
    fn functions_say_what_is_waited_at() {
        for (function, primitive) in [
            ("pthread_mutex_lock", Some(Primitive::Mutex)),
            ("pthread_cond_wait", Some(Primitive::Condition)),
            ("pthread_rwlock_wrlock", Some(Primitive::ReaderWriterLock)),
            ("sem_wait", Some(Primitive::Semaphore)),
            ("__pthread_clockjoin_ex", Some(Primitive::Join)),
            (
                "std::sys::sync::condvar::futex::Condvar::wait",
                Some(Primitive::Condition),
            ),
            (
                "parking_lot::raw_mutex::RawMutex::lock_slow",
                Some(Primitive::Mutex),
            ),
            (
                "std::scoped_lock<std::mutex>::scoped_lock(std::mutex&)",
                Some(Primitive::Mutex),
            ),
            ("std::thread::scoped::scope", Some(Primitive::Join)),
            ("pthread_once", Some(Primitive::Once)),
            ("__pthread_once_slow", Some(Primitive::Once)),
            ("__cxa_guard_acquire", Some(Primitive::Once)),
            (
                "std::sys::sync::once::futex::Once::call",
                Some(Primitive::Once),
            ),
            (
                "once_cell::imp::OnceCell<T>::initialize",
                Some(Primitive::Once),
            ),
            ("sync.(*Once).doSlow", Some(Primitive::Once)),
            ("core::ops::function::FnOnce::call_once", None),
            ("flock", Some(Primitive::FileLock)),
            ("LWLockAcquire", Some(Primitive::ReaderWriterLock)),
            ("LockAcquireExtended", Some(Primitive::Mutex)),
            ("ConditionVariableSleep", Some(Primitive::Condition)),
            ("WaitLatch", None),
            ("sync.(*Mutex).Lock", Some(Primitive::Mutex)),
            ("sync.(*RWMutex).RLock", Some(Primitive::ReaderWriterLock)),
            ("sync.(*WaitGroup).Wait", Some(Primitive::Join)),
            ("syscall", None),
        ] {
            let named = named(function, "");
            assert_eq!(Primitive::of_function(&named), primitive, "{function}");
        }
        let source = named(
            "lock<u64>",
            "/rustc/4a4ef49/library/std/src/sync/poison/mutex.rs",
        );
        assert_eq!(Primitive::of_function(&source), Some(Primitive::Mutex));
    }

    #[test]
    fn locks_of_python_are_told_from_what_takes_them() {
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/opt/conda/lib/python3.12/queue.py",
            "/usr/lib/python3.13/concurrent/futures/_base.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert!(is_of_python_locks(file), "{file}");
        }
        for file in [
            "/home/me/threading.py",
            "/usr/lib/python3.11/site-packages/mine/threading.py",
            "/usr/lib/python3.11/json/decoder.py",
            "<string>",
            "",
        ] {
            assert!(!is_of_python_locks(file), "{file}");
        }
        assert!(is_system_file(
            "/usr/lib/python3.11/lib-dynload/_queue.cpython-311.so"
        ));
        for (function, primitive) in [
            ("Condition.wait", Some(Primitive::Condition)),
            ("Semaphore.acquire", Some(Primitive::Semaphore)),
            ("Barrier.wait", Some(Primitive::Barrier)),
            ("Thread.join", Some(Primitive::Join)),
            ("_shutdown", Some(Primitive::Join)),
            ("Queue.get", None),
        ] {
            assert_eq!(Primitive::of_python(function), primitive, "{function}");
        }
    }

    #[test]
    fn only_a_mutex_of_glibc_says_who_has_it() {
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        assert!(takes_glibc_mutex(libc, "pthread_mutex_lock"));
        assert!(!takes_glibc_mutex(libc, "pthread_cond_wait"));
        assert!(!takes_glibc_mutex(libc, "syscall"));
        assert!(!takes_glibc_mutex(
            "/lib/ld-musl-x86_64.so.1",
            "pthread_mutex_lock"
        ));
    }
}
