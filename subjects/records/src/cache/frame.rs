//! A frame of the cache, which holds one page, and the guards that latch it.

use std::ops::{Deref, Range};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use concurve_latch::{Class, Versioned, VersionedRead, VersionedWrite};

use crate::counted::{AtomicBool, AtomicU32, AtomicU64};
use crate::page::{PAGE_BYTES, PAGE_WORDS, PageBytes, PageId, PageLook, PageMut};

/// The number of no page.
const NO_PAGE: u64 = u64::MAX;
/// In `pins`: the frame belongs to one thread, which gives it another page or none.
const CLAIMED: u32 = 1 << 31;

/// Why something cannot be read without latches now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// A page changes, or has changed.
    Change,
    /// A page is not in memory, or is not what it should be, or somebody may hold a lock.
    Other,
}

/// Stored as `CachePadded`, because all CPUs latch pages. What is asked of each page stands in one line, and
/// the begin of its header, too.
#[repr(C)]
pub struct Frame {
    /// Changes only while the page is not valid.
    id: AtomicU64,
    /// The next frame in a chain of the page table, from 1; 0: none.
    pub next: AtomicU32,
    /// Users that rely on the page being here, and [`CLAIMED`].
    pins: AtomicU32,
    /// The page differs from the disk. Set before its log record is appended.
    is_dirty: AtomicBool,
    /// Used since the clock hand passed.
    used: AtomicBool,
    /// The buffer of the log that may have records of this node which are not in the log yet, from 1; 0:
    /// none. Changes under the latch.
    gathered: AtomicU32,
    /// The page; valid unless it is being read from the disk, or could not be read.
    page: Versioned<PAGE_BYTES, PAGE_WORDS>,
}

impl Frame {
    pub fn new(class: Class) -> Self {
        Self {
            id: AtomicU64::new(NO_PAGE),
            next: AtomicU32::new(0),
            pins: AtomicU32::new(0),
            is_dirty: AtomicBool::new(false),
            used: AtomicBool::new(false),
            gathered: AtomicU32::new(0),
            page: Versioned::new(class),
        }
    }

    pub fn id(&self) -> Option<PageId> {
        let number = self.id.load(Acquire);
        (number != NO_PAGE).then_some(PageId {
            file: (number >> 32) as u32,
            number: number as u32,
        })
    }

    #[inline]
    pub fn has(&self, id: PageId) -> bool {
        self.id.load(Acquire) == number(id)
    }

    pub fn is_dirty(&self) -> bool {
        self.is_dirty.load(Acquire)
    }

    /// Whether it was dirty; now it is not.
    pub fn take_dirty(&self) -> bool {
        self.is_dirty.swap(false, AcqRel)
    }

    pub fn mark_dirty(&self) {
        self.is_dirty.store(true, Release);
    }

    /// The buffer that may have records of this node; from now on, none has. To be called with the latch.
    pub fn take_gathered(&self) -> Option<u32> {
        let buffer = self.gathered.load(Relaxed);
        if buffer != 0 {
            self.gathered.store(0, Relaxed);
        }
        buffer.checked_sub(1)
    }

    /// A store each time would invalidate the cache line for other CPUs.
    #[inline]
    fn mark_used(&self) {
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    /// Whether the page is not in use, and was not used since the last call.
    pub fn is_idle(&self) -> bool {
        if self.pins.load(Relaxed) > 0 {
            return false;
        }
        let is_used = self.used.load(Relaxed);
        if is_used {
            self.used.store(false, Relaxed);
        }
        !is_used
    }

    /// Pins the page, if it is in this frame.
    #[inline]
    pub fn pin(&self, id: PageId) -> Option<Pin<'_>> {
        let before = self.pins.fetch_add(1, AcqRel);
        let pin = Pin(self);
        // Who claims the frame afterwards finds it pinned.
        if before & CLAIMED != 0 || !self.has(id) {
            return None;
        }
        self.mark_used();
        Some(pin)
    }

    /// Pins the page. To be called while the stripe is latched in whose table it stands: then nobody
    /// assigns another page to the frame.
    pub fn pin_in_table(&self) -> Pin<'_> {
        self.pins.fetch_add(1, AcqRel);
        self.mark_used();
        Pin(self)
    }

    /// Begins to read the page without latch and pin, if it is in this frame.
    #[inline]
    pub fn look(&self, id: PageId) -> Result<PageLook<'_>, Obstacle> {
        let seen = self.page.snapshot().ok_or(Obstacle::Change)?;
        if !self.has(id) {
            return Err(Obstacle::Other);
        }
        self.mark_used();
        Ok(seen)
    }

    /// The page, latched exclusively without a pin, if it is in this frame and its latch is available now.
    /// Who has the latch keeps the page here as well as a pin does.
    #[inline]
    pub fn try_to_write(&self, id: PageId) -> Option<PageWrite<'_>> {
        if !self.has(id) {
            return None;
        }
        let page = self.page.try_write()?;
        // It may have been evicted before it was latched.
        let is_here = self.has(id) && page.is_valid();
        is_here.then(|| {
            self.mark_used();
            let (frame, pin) = (self, None);
            PageWrite { page, frame, pin }
        })
    }

    /// As [`Frame::try_to_write`], but latched shared.
    #[inline]
    pub fn try_to_read(&self, id: PageId) -> Option<PageRead<'_>> {
        if !self.has(id) {
            return None;
        }
        let page = self.page.try_read()?;
        let is_here = self.has(id) && page.is_valid();
        is_here.then(|| {
            self.mark_used();
            PageRead { page, _pin: None }
        })
    }

    /// Claims the frame and pins it, if it is not pinned.
    pub fn claim(&self) -> bool {
        let claimed = CLAIMED | 1;
        self.pins
            .compare_exchange(0, claimed, AcqRel, Relaxed)
            .is_ok()
    }

    /// Claims the frame, if it has no page.
    pub fn claim_empty(&self) -> bool {
        if !self.claim() {
            return false;
        }
        // Another thread may have assigned a page since the check.
        let is_empty = self.id().is_none();
        if !is_empty {
            self.give_back();
        }
        is_empty
    }

    /// Ends a claim; the frame keeps what it has.
    pub fn give_back(&self) {
        self.pins.fetch_sub(CLAIMED | 1, AcqRel);
    }

    /// Makes a claimed frame empty, unless its page is latched or differs from the disk. Before, while the
    /// page is latched, calls `forget`.
    pub fn clear(&self, forget: impl FnOnce()) -> bool {
        // Without waiting: who has the latch may wait for what the caller has latched.
        let Some(mut page) = self.page.try_write() else {
            return false;
        };
        // Nobody changes the page any more; who had latched it may have changed it until now.
        if self.is_dirty() {
            return false;
        }
        forget();
        page.invalidate();
        self.id.store(NO_PAGE, Release);
        true
    }

    /// Assigns a page to a claimed frame, which is empty; the claim ends. The page is not valid until
    /// its contents are put to what is returned.
    pub fn take(&self, id: PageId) -> PageWrite<'_> {
        let page = self.page.write();
        self.id.store(number(id), Release);
        self.used.store(true, Relaxed);
        self.pins.fetch_sub(CLAIMED, AcqRel);
        let (frame, pin) = (self, Some(Pin(self)));
        PageWrite { page, frame, pin }
    }

    /// Empties a pinned frame, whose page could not be read.
    pub fn give_up(&self) {
        self.id.store(NO_PAGE, Release);
    }

    /// The page, latched shared if that is possible now. It must be pinned.
    pub fn try_read(&self) -> Option<VersionedRead<'_, PAGE_BYTES, PAGE_WORDS>> {
        self.page.try_read()
    }
}

fn number(id: PageId) -> u64 {
    u64::from(id.file) << 32 | u64::from(id.number)
}

/// Keeps a page in its frame.
pub struct Pin<'a>(&'a Frame);

impl Deref for Pin<'_> {
    type Target = Frame;

    fn deref(&self) -> &Frame {
        self.0
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, AcqRel);
    }
}

/// A page latched for reading, shared.
pub struct PageRead<'a> {
    // Dropped in this order: the latch before the pin.
    page: VersionedRead<'a, PAGE_BYTES, PAGE_WORDS>,
    /// None if the page was latched without a pin.
    _pin: Option<Pin<'a>>,
}

impl<'a> PageRead<'a> {
    /// `None` if the page could not be read.
    pub fn latch(pin: Pin<'a>) -> Option<Self> {
        let page = pin.0.page.read();
        let _pin = Some(pin);
        page.is_valid().then_some(Self { page, _pin })
    }
}

impl Deref for PageRead<'_> {
    type Target = PageBytes;

    fn deref(&self) -> &PageBytes {
        &self.page
    }
}

/// A page latched for changing, exclusively.
pub struct PageWrite<'a> {
    // Dropped in this order: the latch before the pin.
    page: VersionedWrite<'a, PAGE_BYTES, PAGE_WORDS>,
    frame: &'a Frame,
    /// None if the page was latched without a pin.
    pin: Option<Pin<'a>>,
}

impl<'a> PageWrite<'a> {
    /// `None` if the page could not be read.
    pub fn latch(pin: Pin<'a>) -> Option<Self> {
        let frame = pin.0;
        let (page, pin) = (frame.page.write(), Some(pin));
        page.is_valid().then_some(Self { page, frame, pin })
    }

    /// To be called before the change is logged: a checkpoint that begins after that record must
    /// see that the page is dirty.
    pub fn mark_dirty(&self) {
        // Only who has the latch finds it dirty and makes it clean.
        if !self.frame.is_dirty() {
            self.frame.mark_dirty();
        }
    }

    /// The buffer that may have records of this node; from now on, none has.
    pub fn take_gathered(&self) -> Option<u32> {
        self.frame.take_gathered()
    }

    /// From now on, a buffer may have records of this node; returns another one that may have some.
    pub fn gather_in(&self, buffer: u32) -> Option<u32> {
        let before = self.frame.gathered.load(Relaxed);
        if before == buffer + 1 {
            return None;
        }
        self.frame.gathered.store(buffer + 1, Relaxed);
        before.checked_sub(1)
    }

    /// Nobody reads the page without its latch any more, until it is unlatched.
    pub fn begin_change(&mut self) {
        self.page.begin_change();
    }

    /// The page has its contents: it is valid once it is unlatched.
    pub fn validate(&mut self) {
        self.page.validate();
    }

    /// Releases the latch of a page that was given to a frame, and keeps the pin.
    pub fn unlatch(self) -> Pin<'a> {
        self.pin.expect("a page is given to a frame with a pin")
    }
}

impl Deref for PageWrite<'_> {
    type Target = PageBytes;

    fn deref(&self) -> &PageBytes {
        &self.page
    }
}

impl PageMut for PageWrite<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.page.put(at, bytes);
    }

    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.page.shift(from, to);
    }
}
