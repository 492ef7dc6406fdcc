//! A frame of the cache, which holds one page, and the guards that latch it.

use std::ops::Deref;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use concurve_latch::{Class, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::page::{Page, PageId};

/// The number of no page.
const NO_PAGE: u64 = u64::MAX;

/// Stored as `CachePadded`, because all CPUs count pins.
pub struct Frame {
    pub content: RwLock<Content>,
    id: AtomicU64,
    /// Users that rely on the page being here. A frame is claimed by the change from 0 to 1.
    pub pins: AtomicU32,
    /// The page differs from the disk. Set before its log record is appended.
    pub is_dirty: AtomicBool,
    /// Used since the clock hand passed.
    pub used: AtomicBool,
}

pub struct Content {
    pub page: Page,
    /// The page was read successfully.
    pub is_valid: bool,
}

impl Frame {
    pub fn new(class: Class) -> Self {
        Self {
            content: class.rwlock(Content {
                page: Page::blank(),
                is_valid: false,
            }),
            id: AtomicU64::new(NO_PAGE),
            pins: AtomicU32::new(0),
            is_dirty: AtomicBool::new(false),
            used: AtomicBool::new(false),
        }
    }

    pub fn id(&self) -> Option<PageId> {
        let number = self.id.load(Acquire);
        (number != NO_PAGE).then_some(PageId {
            file: (number >> 32) as u32,
            number: number as u32,
        })
    }

    /// Pins the page. To be called while its stripe is latched.
    pub fn pin(&self) -> Pin<'_> {
        self.pins.fetch_add(1, AcqRel);
        // A store each time would invalidate the cache line for other CPUs.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
        Pin(self)
    }

    /// Claims the frame, if its page is not pinned.
    pub fn claim(&self) -> bool {
        self.pins.compare_exchange(0, 1, AcqRel, Relaxed).is_ok()
    }

    /// Assigns a page to a claimed frame.
    pub fn take(&self, id: PageId) {
        let number = u64::from(id.file) << 32 | u64::from(id.number);
        self.id.store(number, Release);
        self.used.store(true, Relaxed);
    }

    /// Releases a claimed frame, empty.
    pub fn free(&self) {
        self.id.store(NO_PAGE, Release);
        self.pins.fetch_sub(1, AcqRel);
    }

    /// Claims the frame, if it has no page.
    pub fn claim_empty(&self) -> bool {
        if !self.claim() {
            return false;
        }
        // Another thread may have assigned a page since the check.
        let is_empty = self.id().is_none();
        if !is_empty {
            self.pins.fetch_sub(1, AcqRel);
        }
        is_empty
    }
}

/// Keeps a page in its frame.
pub struct Pin<'a>(pub &'a Frame);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, AcqRel);
    }
}

/// A page latched for reading, shared.
pub struct PageRead<'a> {
    // Dropped in this order: the latch before the pin.
    content: RwLockReadGuard<'a, Content>,
    _pin: Pin<'a>,
}

impl<'a> PageRead<'a> {
    /// `None` if the page could not be read.
    pub fn latch(pin: Pin<'a>) -> Option<Self> {
        let content = pin.0.content.read();
        content.is_valid.then_some(Self { content, _pin: pin })
    }
}

impl Deref for PageRead<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.content.page
    }
}

/// A page latched for changing, exclusively.
pub struct PageWrite<'a> {
    content: RwLockWriteGuard<'a, Content>,
    pin: Pin<'a>,
}

impl<'a> PageWrite<'a> {
    /// `None` if the page could not be read.
    pub fn latch(pin: Pin<'a>) -> Option<Self> {
        let content = pin.0.content.write();
        content.is_valid.then_some(Self { content, pin })
    }

    /// To be called before the change is logged: a checkpoint that begins after that record must
    /// see that the page is dirty.
    pub fn mark_dirty(&self) {
        self.pin.0.is_dirty.store(true, Release);
    }

    pub fn page_mut(&mut self) -> &mut Page {
        &mut self.content.page
    }
}

impl Deref for PageWrite<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.content.page
    }
}
