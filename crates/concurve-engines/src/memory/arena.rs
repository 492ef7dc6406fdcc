//! The shared memory: what it consists of, and how memory is taken from it and given back.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use concurve_latch::{Class, Mutex, SEATS, seat_number};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::memory::lane::Lane;
use crate::memory::pool::{Ground, Pool, Slab};
use crate::memory::sizes::{SIZES, UNIT, batch, block_bytes, size_of_layout};
use crate::memory::units::{UNITS_MAX, Units};

/// A run of so many units is given back to the system, not only to the arena.
const RETURNED_UNITS: usize = 16;

/// The arena begins at a multiple of this, and larger alignments are refused.
const ALIGN_MAX: usize = 2 << 20;

/// What all processes know about the memory; in shared memory itself. Its tables have room for the
/// largest arena, and take memory as far as they are used.
#[repr(C)]
pub struct Arena {
    ground: Ground,
    bytes: usize,
    /// What to say when it is exhausted.
    remedy: &'static str,
    is_exhausted: AtomicBool,
    pools: [Mutex<Pool>; SIZES],
    lanes: [Lane; SEATS],
    slabs: [Slab; UNITS_MAX],
    /// Last: its value begins as the mapping's zeros.
    units: Mutex<Units>,
}

/// The arena of this process and its children, once there is one. Never unmapped.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// The same, unless this process allocates elsewhere.
static IN_USE: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// How much is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// What was asked for.
    pub bytes: usize,
    /// In slabs and runs.
    pub used_bytes: usize,
    /// At most at any time.
    pub peak_bytes: usize,
    /// In blocks that are in use, or in a thread's lane, or were in that of a killed process.
    pub block_bytes: usize,
}

/// Reserves shared memory; what is allocated from now on is there. `remedy` tells the user what to
/// do when it is exhausted: `raise --shared-memory`.
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
    // SAFETY: the mapping is large enough, aligned to a page, and zeros are a sound value of what is
    // not written: lanes, slabs, and the map of units.
    unsafe {
        let ground = Ground {
            base: base.add(base.align_offset(ALIGN_MAX)),
            slabs: (&raw mut (*arena).slabs).cast(),
        };
        (&raw mut (*arena).ground).write(ground);
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

/// Whether this process allocates in shared memory from now on, or where the system does. It frees in
/// both.
pub fn allocate_shared(is_shared: bool) {
    let arena = if is_shared {
        ARENA.load(Acquire)
    } else {
        ptr::null_mut()
    };
    IN_USE.store(arena, Release);
}

/// Address space that children share. Pages come when they are touched.
fn reserve(bytes: usize) -> io::Result<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping, placed by the kernel.
    let place = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags)? };
    Ok(place.cast())
}

/// Whether allocations go to shared memory.
pub fn is_open() -> bool {
    !ARENA.load(Relaxed).is_null()
}

/// Whether memory was asked for that was not there.
pub fn is_exhausted() -> bool {
    Arena::get().is_some_and(|it| it.is_exhausted.load(Relaxed))
}

/// What to tell the user when it is.
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
        // SAFETY: never unmapped; what changes is atomic, behind a latch, or a thread's own.
        Some(unsafe { arena.as_ref() })
    }

    /// The arena, if this process allocates there.
    #[inline]
    pub fn in_use() -> Option<&'static Arena> {
        let arena = NonNull::new(IN_USE.load(Acquire))?;
        // SAFETY: as above.
        Some(unsafe { arena.as_ref() })
    }

    /// Whether this place was allocated here.
    #[inline]
    pub fn contains(&self, place: *mut u8) -> bool {
        place.addr().wrapping_sub(self.ground.base.addr()) < self.bytes
    }

    /// Null if there is none left.
    #[inline]
    pub fn allocate(&self, layout: Layout) -> *mut u8 {
        let Some(size) = size_of_layout(layout) else {
            return self.allocate_run(layout);
        };
        let list = &self.lanes[seat_number()].0[size];
        // SAFETY: a seat is one thread's.
        match unsafe { list.pop() } {
            Some(block) => block,
            None => self.fill(size),
        }
    }

    /// # Safety
    /// `place` was allocated here with this layout, and is no longer used.
    #[inline]
    pub unsafe fn free(&self, place: *mut u8, layout: Layout) {
        let Some(size) = size_of_layout(layout) else {
            return self.free_run(self.ground.unit_of(place), units(layout.size()));
        };
        let list = &self.lanes[seat_number()].0[size];
        // SAFETY: a seat is one thread's, and the caller gives the block up.
        unsafe { list.push(place) };
        if list.count() > 2 * batch(size) {
            self.empty(size);
        }
    }

    /// Changes the size where it is, if that is possible.
    ///
    /// # Safety
    /// `place` was allocated here with this layout.
    pub unsafe fn resize(&self, place: *mut u8, old: Layout, new: Layout) -> bool {
        match (size_of_layout(old), size_of_layout(new)) {
            (Some(before), Some(after)) => before == after,
            (None, None) => {
                let begin = self.ground.unit_of(place);
                let (before, after) = (units(old.size()), units(new.size()));
                if after < before {
                    self.free_run(begin + after, before - after);
                }
                after <= before || self.units.lock().take_at(begin + before, after - before)
            }
            _ => false,
        }
    }

    /// A block, and some more for the lane.
    #[cold]
    #[inline(never)]
    fn fill(&self, size: usize) -> *mut u8 {
        let list = &self.lanes[seat_number()].0[size];
        let mut pool = self.pools[size].lock();
        // SAFETY: the pool is of this size; a seat is one thread's. All is done under the latch:
        // blocks are never out of the pool and not in the lane.
        unsafe {
            for _ in 0..batch(size) {
                match pool.take(self.ground, size) {
                    Some(block) => list.push(block),
                    None if list.count() > 0 => break,
                    None => match self.take_units(1, 1) {
                        Some(unit) => pool.add(self.ground, unit),
                        None => break,
                    },
                }
            }
            // A new slab took one turn.
            let block = list.pop().or_else(|| pool.take(self.ground, size));
            drop(pool);
            block.unwrap_or_else(|| self.tell_exhausted(block_bytes(size)))
        }
    }

    /// Gives some of a lane's blocks back to the pool.
    #[cold]
    #[inline(never)]
    fn empty(&self, size: usize) {
        let list = &self.lanes[seat_number()].0[size];
        let mut pool = self.pools[size].lock();
        for _ in 0..batch(size) {
            // SAFETY: as in `fill`.
            let whole = unsafe {
                let Some(block) = list.pop() else { break };
                pool.give_back(self.ground, size, block)
            };
            if let Some(unit) = whole {
                self.units.lock().give_back(unit, 1);
            }
        }
    }

    #[cold]
    fn allocate_run(&self, layout: Layout) -> *mut u8 {
        let align = units(layout.align()).max(1);
        match self.take_units(units(layout.size()).max(1), align) {
            Some(unit) => self.ground.address(unit),
            None => self.tell_exhausted(layout.size()),
        }
    }

    fn take_units(&self, count: usize, align: usize) -> Option<usize> {
        if align > ALIGN_MAX / UNIT {
            return None;
        }
        self.units.lock().take(count, align)
    }

    #[cold]
    fn free_run(&self, begin: usize, count: usize) {
        let count = count.max(1);
        if count >= RETURNED_UNITS {
            // SAFETY: nobody uses it. If the system does not take it back, the arena keeps it.
            let _ = unsafe {
                let place = self.ground.address(begin).cast();
                madvise(place, count * UNIT, Advice::LinuxRemove)
            };
        }
        self.units.lock().give_back(begin, count);
    }

    /// Says so once; null. Nothing may be allocated here.
    #[cold]
    fn tell_exhausted(&self, wanted: usize) -> *mut u8 {
        if !self.is_exhausted.swap(true, Relaxed) {
            let mut text = StackText::default();
            let _ = std::fmt::write(
                &mut text,
                format_args!(
                    "the shared memory of {} MiB is exhausted (asked for {wanted} bytes more): {}\n",
                    self.bytes >> 20,
                    self.remedy
                ),
            );
            // Standard error may be closed.
            let _ = rustix::io::write(rustix::stdio::stderr(), &text.bytes[..text.length]);
        }
        ptr::null_mut()
    }
}

/// Units that hold so many bytes.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// A text that needs no allocation.
struct StackText {
    bytes: [u8; 256],
    length: usize,
}

impl Default for StackText {
    fn default() -> Self {
        Self {
            bytes: [0; 256],
            length: 0,
        }
    }
}

impl std::fmt::Write for StackText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let bytes = text.len().min(room.len());
        room[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        self.length += bytes;
        Ok(())
    }
}
