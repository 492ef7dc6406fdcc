//! Is a thread at one of the places? By the return addresses on its stack.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::setting::Setting;
use crate::system::{Loaded, StackWalk, dl_iterate_phdr, unwind_address, unwind_backtrace};

/// The place is one of the nearest frames: between it and us are only functions of libraries of locks.
const FRAMES_MAX: usize = 12;
const END_OF_STACK: c_int = 5;
const GO_ON: c_int = 0;

/// By how much the file was moved when it was loaded, and 1 more; 0 while that is not known.
static MOVED: AtomicUsize = AtomicUsize::new(0);

/// Looks for the file that has the places, before the program's own code runs: links are followed.
pub fn find(setting: &Setting) {
    moved_by(setting, is_same_file);
}

/// Is the file loaded that has the places?
pub fn is_found() -> bool {
    MOVED.load(Ordering::Acquire) != 0
}

/// Is one of the places on the stack of this thread? Allocates nothing: a lock of the program's own
/// allocator may be about to be taken.
pub fn is_on_stack(setting: &Setting) -> bool {
    // A file that was loaded since then is known by its name alone.
    let Some(moved) = moved_by(setting, |name, file| name == file.as_os_str().as_bytes()) else {
        return false;
    };
    let mut search = Search {
        moved,
        offsets: &setting.offsets,
        frames: 0,
        is_found: false,
    };
    let at = std::ptr::from_mut(&mut search).cast();
    // SAFETY: `each_frame` gets what `at` points to, which lives until the walk has ended.
    unsafe { unwind_backtrace(each_frame, at) };
    search.is_found
}

struct Search<'a> {
    moved: usize,
    offsets: &'a [usize],
    frames: usize,
    is_found: bool,
}

/// Places are known by the call or by the address behind it.
fn is_place(offsets: &[usize], own: usize) -> bool {
    offsets.iter().any(|it| own == *it || own == it + 1)
}

extern "C" fn each_frame(frame: *mut StackWalk, at: *mut c_void) -> c_int {
    // SAFETY: `at` is the search of `is_on_stack`, which nobody else uses meanwhile.
    let search = unsafe { &mut *at.cast::<Search<'_>>() };
    // SAFETY: the unwinder gives the frame for the time of this call.
    let address = unsafe { unwind_address(frame) };
    search.is_found = is_place(search.offsets, address.wrapping_sub(search.moved));
    search.frames += 1;
    if search.is_found || search.frames == FRAMES_MAX {
        END_OF_STACK
    } else {
        GO_ON
    }
}

type IsSame = fn(&[u8], &Path) -> bool;

fn moved_by(setting: &Setting, is_same: IsSame) -> Option<usize> {
    if let Some(moved) = MOVED.load(Ordering::Acquire).checked_sub(1) {
        return Some(moved);
    }
    let moved = loaded_at(&setting.file, is_same)?;
    MOVED.store(moved.checked_add(1)?, Ordering::Release);
    Some(moved)
}

/// By how much a loaded file was moved.
fn loaded_at(file: &Path, is_same: IsSame) -> Option<usize> {
    let mut wanted = Wanted {
        file,
        is_same,
        moved: None,
    };
    let at = std::ptr::from_mut(&mut wanted).cast();
    // SAFETY: `each_file` gets what `at` points to, which lives until the call has ended.
    unsafe { dl_iterate_phdr(each_file, at) };
    wanted.moved
}

struct Wanted<'a> {
    file: &'a Path,
    is_same: IsSame,
    moved: Option<usize>,
}

extern "C" fn each_file(loaded: *const Loaded, _bytes: usize, at: *mut c_void) -> c_int {
    // SAFETY: `at` is what `loaded_at` gave, and the loader gives a valid entry for this call.
    let (wanted, loaded) = unsafe { (&mut *at.cast::<Wanted<'_>>(), &*loaded) };
    if loaded.name.is_null() {
        return 0;
    }
    let is_same = wanted.is_same;
    if is_same(name_of(loaded.name), wanted.file) {
        wanted.moved = Some(loaded.moved);
        return 1;
    }
    0
}

fn name_of<'a>(name: *const c_char) -> &'a [u8] {
    // SAFETY: the loader's names end with a zero, and stay while the loader's lock is held.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

/// Does the name of an entry lead to the file? That of the program itself is empty.
fn is_same_file(name: &[u8], file: &Path) -> bool {
    let found = if name.is_empty() {
        std::fs::read_link("/proc/self/exe")
    } else {
        std::fs::canonicalize(OsStr::from_bytes(name))
    };
    found.is_ok_and(|found| found == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_call_or_the_address_behind_it() {
        let offsets = [0x100, 0x200];
        let found = [0xff, 0x100, 0x101, 0x102, 0x200, 0x201].map(|it| is_place(&offsets, it));
        assert_eq!(found, [false, true, true, false, true, true]);
    }

    #[test]
    fn the_program_itself_is_found_and_what_is_not_loaded_is_not() {
        let own = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert!(loaded_at(&own, is_same_file).is_some());
        assert!(loaded_at(Path::new("/nowhere"), is_same_file).is_none());
    }
}
