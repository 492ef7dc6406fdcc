//! The page cache of the host: holds dirty pages, and writes them out in the order of their sectors,
//! in requests as large as the kernel makes them.

use std::collections::BTreeMap;

use crate::request::Io;
use crate::time::{SECOND, Time};

/// Names a file.
pub type FileId = usize;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageCacheTunables {
    /// Sectors of memory that pages may fill.
    pub sectors: u64,
    /// Shares of it (`dirty_background_ratio`, `dirty_ratio`): above the first, pages are written out
    /// in the background; above the second, the writing process writes out itself.
    pub background_share: f64,
    pub limit_share: f64,
    /// Age above which pages are written out anyway, and how often that is checked.
    pub expire: Time,
    pub interval: Time,
    /// Sectors of a request that is made of neighbouring pages.
    pub request_sectors: u32,
}

impl Default for PageCacheTunables {
    /// Linux 2.6.16 with 4 GB: 10 and 40 %, 30 s, 5 s; requests up to 512 KiB.
    fn default() -> Self {
        Self {
            sectors: 4 * 1024 * 1024 * 2,
            background_share: 0.1,
            limit_share: 0.4,
            expire: 30 * SECOND,
            interval: 5 * SECOND,
            request_sectors: 1024,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    sectors: u64,
    since: Time,
}

/// Dirty pages, by file.
#[derive(Debug)]
pub struct PageCache {
    pub tunables: PageCacheTunables,
    files: Vec<BTreeMap<u64, Extent>>,
    dirty: u64,
}

impl PageCache {
    pub fn new(tunables: PageCacheTunables, files: usize) -> Self {
        Self {
            tunables,
            files: vec![BTreeMap::new(); files],
            dirty: 0,
        }
    }

    /// Pages of a file are written to memory; `sector` is where they lie on the volume.
    pub fn write(&mut self, file: FileId, sector: u64, sectors: u64, now: Time) {
        let extents = &mut self.files[file];
        let (mut start, mut end, mut since) = (sector, sector + sectors, now);
        // Everything that overlaps or touches becomes one extent.
        while let Some((&at, &old)) = extents.range(..=end).next_back() {
            if at + old.sectors < start {
                break;
            }
            extents.remove(&at);
            self.dirty -= old.sectors;
            (start, end) = (start.min(at), end.max(at + old.sectors));
            since = since.min(old.since);
        }
        let sectors = end - start;
        extents.insert(start, Extent { sectors, since });
        self.dirty += sectors;
    }

    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    pub fn above_background(&self) -> bool {
        self.dirty as f64 > self.tunables.background_share * self.tunables.sectors as f64
    }

    pub fn above_limit(&self) -> bool {
        self.dirty as f64 > self.tunables.limit_share * self.tunables.sectors as f64
    }

    /// `fsync`: writes out all pages of a file, as synchronous requests.
    pub fn flush(&mut self, file: FileId, ios: &mut Vec<Io>) {
        for (sector, extent) in std::mem::take(&mut self.files[file]) {
            self.dirty -= extent.sectors;
            self.cut(sector, extent.sectors, true, ios);
        }
    }

    /// Write-back: writes out up to `sectors` of pages that became dirty before `than`, file by file
    /// and by sector.
    pub fn write_back(&mut self, than: Time, sectors: u64, ios: &mut Vec<Io>) {
        let mut left = sectors;
        for file in 0..self.files.len() {
            let old: Vec<u64> = self.files[file]
                .iter()
                .filter(|it| it.1.since <= than)
                .map(|it| *it.0)
                .collect();
            for sector in old {
                if left == 0 {
                    return;
                }
                let extent = self.files[file].remove(&sector).expect("it was listed");
                let taken = extent.sectors.min(left);
                left -= taken;
                self.dirty -= taken;
                self.cut(sector, taken, false, ios);
                if taken < extent.sectors {
                    let rest = Extent {
                        sectors: extent.sectors - taken,
                        ..extent
                    };
                    self.files[file].insert(sector + taken, rest);
                }
            }
        }
    }

    fn cut(&self, sector: u64, sectors: u64, sync: bool, ios: &mut Vec<Io>) {
        let most = u64::from(self.tunables.request_sectors);
        for at in (0..sectors).step_by(most as usize) {
            let length = most.min(sectors - at) as u32;
            ios.push(Io::write(sector + at, length, sync));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> PageCache {
        let tunables = PageCacheTunables {
            sectors: 1000,
            request_sectors: 32,
            ..PageCacheTunables::default()
        };
        PageCache::new(tunables, 2)
    }

    fn places(ios: &[Io]) -> Vec<(u64, u32)> {
        ios.iter().map(|it| (it.sector, it.sectors)).collect()
    }

    #[test]
    fn neighbouring_pages_become_requests_in_the_order_of_sectors() {
        let mut cache = cache();
        cache.write(0, 100, 8, 1);
        cache.write(0, 40, 8, 2);
        cache.write(0, 108, 40, 3);
        cache.write(0, 104, 8, 4);
        assert_eq!(cache.dirty(), 56);
        let mut ios = Vec::new();
        cache.flush(0, &mut ios);
        assert_eq!(places(&ios), [(40, 8), (100, 32), (132, 16)]);
        assert!(ios.iter().all(|it| it.sync));
        assert_eq!(cache.dirty(), 0);
    }

    #[test]
    fn write_back_takes_what_is_old_and_no_more_than_asked() {
        let mut cache = cache();
        cache.write(0, 0, 64, 10);
        cache.write(1, 500, 64, 5);
        cache.write(1, 900, 8, 50);
        let mut ios = Vec::new();
        cache.write_back(20, 80, &mut ios);
        assert_eq!(places(&ios), [(0, 32), (32, 32), (500, 16)]);
        assert!(ios.iter().all(|it| !it.sync));
        assert_eq!(cache.dirty(), 48 + 8);
        ios.clear();
        cache.flush(1, &mut ios);
        assert_eq!(places(&ios), [(516, 32), (548, 16), (900, 8)]);
    }

    #[test]
    fn thresholds_are_shares_of_the_memory() {
        let mut cache = cache();
        cache.write(0, 0, 100, 0);
        assert!(!cache.above_background());
        cache.write(0, 100, 4, 0);
        assert!(cache.above_background() && !cache.above_limit());
        cache.write(0, 104, 300, 0);
        assert!(cache.above_limit());
    }
}
