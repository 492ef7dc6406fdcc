//! The shared memory of this process: opening it, and its use.
#![allow(unsafe_code)]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use concurve_latch::{Class, Mutex};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::memory::arena::{ALIGN_MAX, Arena};
use crate::memory::machine::left_of_machine;
use crate::memory::pool::{Pool, Region};
use crate::memory::sizes::{SIZES, UNIT, block_bytes};
use crate::memory::units::UNITS_MAX;

/// The arena of this process and its children, once there is one. Never unmapped.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// The same, unless this process allocates elsewhere.
static IN_USE: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// How much shared memory is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The size that was requested.
    pub bytes: usize,
    /// In slabs and runs.
    pub used_bytes: usize,
    /// At most at any time.
    pub peak_bytes: usize,
    /// In blocks that are in use, in a thread cache, or were in that of a killed process.
    pub block_bytes: usize,
}

/// Reserves shared memory, in which everything is allocated from now on. `remedy` ends the message
/// when it is exhausted: `raise --shared-memory`.
///
/// To be called once, before other threads start and before engines are forked.
///
/// # Errors
/// If the size is unusable, it is open already, or the system refuses it.
pub fn open(bytes: usize, remedy: &'static str) -> io::Result<()> {
    let units = bytes / UNIT;
    if !(16..=UNITS_MAX).contains(&units) {
        let text =
            format!("shared memory of {bytes} bytes: 1 MiB to 64 GiB are possible; {remedy}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    if is_open() {
        let text = "it is open already, and a process has one";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let base = reserve(units * UNIT + ALIGN_MAX)?;
    let arena: *mut Arena = reserve(size_of::<Arena>())?.cast();
    let (pool_class, unit_class) = (Class::named("memory pool"), Class::named("memory units"));
    // SAFETY: the mapping is large enough, aligned to a page, and zeros are valid for what is
    // not written: thread caches, slabs, and the map of units.
    unsafe {
        let region = Region {
            base: base.add(base.align_offset(ALIGN_MAX)),
            slabs: (&raw mut (*arena).slabs).cast(),
        };
        (&raw mut (*arena).region).write(region);
        (&raw mut (*arena).bytes).write(units * UNIT);
        (&raw mut (*arena).remedy).write(remedy);
        let pools: *mut Mutex<Pool> = (&raw mut (*arena).pools).cast();
        for size in 0..SIZES {
            pools.add(size).write(pool_class.mutex(Pool::new()));
        }
        let raw = unit_class.mutex(());
        (&raw mut (*arena).units).cast::<Mutex<()>>().write(raw);
        (*arena).units.get_mut().init(units);
    }
    ARENA.store(arena, Release);
    IN_USE.store(arena, Release);
    Ok(())
}

/// Sets whether this process allocates in shared memory from now on, or with the system's
/// allocator. It can free memory of both.
pub fn allocate_shared(is_shared: bool) {
    let arena = if is_shared {
        ARENA.load(Acquire)
    } else {
        ptr::null_mut()
    };
    IN_USE.store(arena, Release);
}

/// Address space that children share. Pages are allocated when they are touched.
fn reserve(bytes: usize) -> io::Result<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping, placed by the kernel.
    let place = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags)? };
    Ok(place.cast())
}

/// The action that fails when [`open`] does, and the remedy.
pub(crate) fn reserving(bytes: usize) -> String {
    let megabytes = bytes >> 20;
    format!("reserve {megabytes} MiB of shared memory (ask for less, or raise ulimit -v)")
}

/// Whether allocations go to shared memory.
pub fn is_open() -> bool {
    !ARENA.load(Relaxed).is_null()
}

/// Whether an allocation has failed.
pub fn is_exhausted() -> bool {
    Arena::get().is_some_and(|it| it.is_exhausted.load(Relaxed))
}

/// The message when it is exhausted, with the remedy.
pub fn exhaustion() -> String {
    let text = |it: &Arena| {
        let megabytes = it.bytes >> 20;
        format!(
            "the shared memory of {megabytes} MiB is exhausted: {}",
            it.remedy
        )
    };
    Arena::get().map(text).unwrap_or_default()
}

/// Whether a value is in shared memory.
pub fn contains<T>(value: &T) -> bool {
    let place = ptr::from_ref(value).cast_mut().cast();
    Arena::get().is_some_and(|it| it.contains(place))
}

/// How many bytes of the shared memory are left, and of the machine's memory: pages are allocated when they
/// are touched. All that can be counted, if it is not open.
pub fn left() -> u64 {
    let Some(arena) = Arena::get() else {
        return u64::MAX;
    };
    let used = arena.units.lock().used_bytes();
    let left = (arena.bytes - used) as u64;
    left.min(left_of_machine(used as u64))
}

/// How much of the shared memory is in use, if it is open.
pub fn usage() -> Option<Usage> {
    let arena = Arena::get()?;
    let blocks = (0..SIZES).map(|size| arena.pools[size].lock().out * block_bytes(size));
    let block_bytes = blocks.sum();
    let units = arena.units.lock();
    Some(Usage {
        bytes: arena.bytes,
        used_bytes: units.used_bytes(),
        peak_bytes: units.peak_bytes(),
        block_bytes,
    })
}

impl Arena {
    /// The arena, if it is open.
    #[inline]
    pub fn get() -> Option<&'static Arena> {
        let arena = NonNull::new(ARENA.load(Acquire))?;
        // SAFETY: never unmapped; what changes is atomic, behind a latch, or used by one thread.
        Some(unsafe { arena.as_ref() })
    }

    /// The arena, if this process allocates there.
    #[inline]
    pub fn in_use() -> Option<&'static Arena> {
        let arena = NonNull::new(IN_USE.load(Acquire))?;
        // SAFETY: as above.
        Some(unsafe { arena.as_ref() })
    }
}
