//! The classes of the engine's latches, under whose names they are counted, in latching order: a
//! latch that is taken while others are held comes after them.

use concurve_latch::Class;

/// What a session holds, latched during each operation: an engine that dies in an operation dies
/// holding a latch.
pub fn session() -> Class {
    Class::named("record session")
}

/// The last checkpoint, while the next one is made.
pub fn checkpoint() -> Class {
    Class::named("checkpoint")
}

/// The lists of files and of sessions.
pub fn files() -> Class {
    Class::named("record files")
}

/// Operations, with file and global latching.
pub fn operation() -> Class {
    Class::named("record turn")
}

/// Admission of transactions.
pub fn admission() -> Class {
    Class::named("gate")
}

/// The lock table.
pub fn locks() -> Class {
    Class::named("record locks")
}

/// Locks on parts of files, if they have latches of their own.
pub fn file_locks() -> Class {
    Class::named("file locks")
}

/// Free slots and pages.
pub fn free_space() -> Class {
    Class::named("free room")
}

/// Pages that are being written to the disk.
pub fn flush() -> Class {
    Class::named("page flush")
}

/// The contents of a page.
pub fn page() -> Class {
    Class::named("page")
}

/// The page table of the cache.
pub fn cache() -> Class {
    Class::named("record cache")
}

/// Writing the log to the disk.
pub fn log_writer() -> Class {
    Class::named("log writer")
}

/// What a session has gathered for the log.
pub fn gathered() -> Class {
    Class::named("gathered log")
}

/// The log's buffer.
pub fn log() -> Class {
    Class::named("log")
}
