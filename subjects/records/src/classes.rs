//! The classes of the engine's latches: by their names they are counted. A latch that is taken while
//! others are held stands below them.

use concurve_latch::Class;

/// What a session holds, from the beginning of an operation to its end: whoever dies meanwhile dies
/// with a latch.
pub fn session() -> Class {
    Class::named("record session")
}

/// The last checkpoint, while the next one is made.
pub fn checkpoint() -> Class {
    Class::named("checkpoint")
}

/// Which files there are, and which sessions.
pub fn files() -> Class {
    Class::named("record files")
}

/// Latching by file, and global.
pub fn turn() -> Class {
    Class::named("record turn")
}

/// Places for transactions at work.
pub fn gate() -> Class {
    Class::named("gate")
}

/// Who holds locks, and who waits for them.
pub fn locks() -> Class {
    Class::named("record locks")
}

/// Free slots and pages.
pub fn room() -> Class {
    Class::named("free room")
}

/// Pages that are being written to the disk.
pub fn flush() -> Class {
    Class::named("page flush")
}

/// What is on a page.
pub fn page() -> Class {
    Class::named("page")
}

/// Which page is where.
pub fn cache() -> Class {
    Class::named("record cache")
}

/// The log's way to the disk.
pub fn log_writer() -> Class {
    Class::named("log writer")
}

/// The log's buffer.
pub fn log() -> Class {
    Class::named("log")
}
