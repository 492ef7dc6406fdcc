//! What the system offers: time, the functions that stand behind ours, the stack.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry of the loader's list; there is more behind it.
#[repr(C)]
pub struct Loaded {
    pub moved: usize,
    pub name: *const c_char,
}

/// A frame of the unwinder's.
#[repr(C)]
pub struct StackWalk {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

const MONOTONIC: c_int = 1;

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    #[cfg_attr(test, allow(dead_code))]
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    #[cfg(target_env = "gnu")]
    #[cfg_attr(test, allow(dead_code))]
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    pub fn dl_iterate_phdr(
        each: extern "C" fn(*const Loaded, usize, *mut c_void) -> c_int,
        at: *mut c_void,
    ) -> c_int;
    #[link_name = "_Unwind_Backtrace"]
    pub fn unwind_backtrace(
        each: extern "C" fn(*mut StackWalk, *mut c_void) -> c_int,
        at: *mut c_void,
    ) -> c_int;
    #[link_name = "_Unwind_GetIP"]
    pub fn unwind_address(frame: *mut StackWalk) -> usize;
}

/// The time in a unit of its own, as fast as it can be had.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The time in a unit of its own, as fast as it can be had.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    now_ns()
}

/// The time since boot in nanoseconds.
pub fn now_ns() -> u64 {
    let mut time = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { clock_gettime(MONOTONIC, &mut time) };
    (time.seconds * 1_000_000_000 + time.nanoseconds) as u64
}

/// A function of the C library behind ours of the same name.
#[cfg_attr(test, allow(dead_code))]
pub struct Behind {
    name: &'static CStr,
    /// Where the library has several of this name, that which programs are linked with.
    version: &'static CStr,
    found: AtomicPtr<c_void>,
}

#[cfg_attr(test, allow(dead_code))]
impl Behind {
    pub const fn new(name: &'static CStr, version: &'static CStr) -> Self {
        Self {
            name,
            version,
            found: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The function. A program that calls it has it, so a library without it ends the process.
    pub fn get(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let found = self.search();
        if found.is_null() {
            std::process::abort();
        }
        self.found.store(found, Ordering::Release);
        found
    }

    fn search(&self) -> *mut c_void {
        let next = usize::MAX as *mut c_void; // RTLD_NEXT
        #[cfg(target_env = "gnu")]
        if !self.version.is_empty() {
            // SAFETY: both texts end with a zero.
            let found = unsafe { dlvsym(next, self.name.as_ptr(), self.version.as_ptr()) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: the text ends with a zero.
        unsafe { dlsym(next, self.name.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_never_go_back() {
        let first = ticks();
        assert!((0..1000).all(|_| ticks() >= first));
        assert!(now_ns() > 0);
    }
}
