//! Where in its program a thread waits for a lock: the function and the line, without stopping it.
//!
//! While a program runs, [`Watcher::capture`] copies the top of the stack of a thread that is blocked in a
//! system call, for some ten microseconds. After it has ended, [`Resolver::resolve`] unwinds the copies by
//! the call frame information of the program's files, names the functions, and counts samples by site.
//!
//! The kernel gives away only two registers of a blocked thread: the stack pointer and the address at which
//! it will continue. Where a frame is found by another register (a frame pointer) that nobody has saved, the
//! stack is scanned for a return address behind a call of this very function.
//!
//! And where the threads run: [`Hot`] counts samples of the instruction pointer, which the kernel takes.

mod calls;
mod capture;
mod cfi;
mod cpython;
mod elf;
mod hot;
mod maps;
mod names;
mod resolve;
mod samples;
mod spin;
mod symbols;
mod unwind;

pub use capture::{Captured, Python, Sample, Watched, Watcher, Word};
pub use hot::{Hot, HotFile, HotFunction, HotPlaces, HotThread};
pub use maps::Maps;
pub use names::Primitive;
pub use resolve::{Resolver, Site, Sites};
pub use samples::Samples;
pub use unwind::Found;
