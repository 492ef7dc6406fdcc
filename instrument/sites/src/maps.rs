//! `/proc/PID/maps`: which file stands at which addresses of a process.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next maps.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What is mapped in a process, as of one moment.
#[derive(Debug, Default)]
pub struct Maps {
    /// No others have it; 0 where nothing is mapped.
    number: u64,
    /// By address.
    mappings: Vec<Mapping>,
    files: HashMap<Arc<str>, MappedFile>,
}

/// A range of addresses with the part of a file that stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub is_executable: bool,
    pub path: Arc<str>,
}

/// A mapped file, with what tells whether another one stands in its place later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Where it may be opened: as the process sees it, and as we do.
    places: [PathBuf; 2],
    identity: Identity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }
}

impl MappedFile {
    pub fn find(path: &str, root: &Path) -> Option<Self> {
        let inside = root.join(path.trim_start_matches('/'));
        let places = [inside, PathBuf::from(path)];
        let identity = places.iter().find_map(|it| Identity::of(it))?;
        Some(Self { places, identity })
    }

    /// Where the file can be opened still; none if it was replaced or removed meanwhile.
    pub fn path(&self) -> Option<&Path> {
        let is_same = |path: &&PathBuf| Identity::of(path) == Some(self.identity);
        self.places.iter().rev().find(is_same).map(PathBuf::as_path)
    }
}

impl Maps {
    /// What is mapped, from the text of the file; `root` is the root directory as the process has it.
    pub fn new(text: &str, root: &Path) -> Self {
        let mappings = parse(text);
        let executable = mappings.iter().filter(|it| it.is_executable);
        let files = executable
            .filter_map(|it| Some((it.path.clone(), MappedFile::find(&it.path, root)?)))
            .collect();
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            mappings,
            files,
        }
    }

    /// Mappings of program text, each with its file.
    pub fn of_texts(texts: impl IntoIterator<Item = (Mapping, MappedFile)>) -> Self {
        let mut maps = Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ..Self::default()
        };
        for (mapping, file) in texts {
            maps.files.insert(mapping.path.clone(), file);
            maps.mappings.push(mapping);
        }
        maps.mappings.sort_by_key(|it| it.start);
        maps
    }

    /// What tells these maps from all others.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The mapping at an address, and its place among all.
    pub fn find(&self, address: u64) -> Option<(usize, &Mapping)> {
        let after = self.mappings.partition_point(|it| it.start <= address);
        let index = after.checked_sub(1)?;
        let found = self.mappings.get(index)?;
        (address < found.end).then_some((index, found))
    }

    /// The mapping at an address.
    pub fn at(&self, address: u64) -> Option<&Mapping> {
        self.find(address).map(|(_, found)| found)
    }

    /// The program text at an address, and the file it is from.
    pub fn text_at(&self, address: u64) -> Option<(&Mapping, &MappedFile)> {
        let mapping = self.at(address).filter(|it| it.is_executable)?;
        Some((mapping, self.files.get(&mapping.path)?))
    }

    /// The files that have program text here, with their path and the address at which they begin.
    pub fn programs(&self) -> impl Iterator<Item = (&Arc<str>, &MappedFile, u64)> {
        self.files.iter().filter_map(|(path, file)| {
            let first = self.mappings.iter().find(|it| it.path == *path)?;
            Some((path, file, first.start.wrapping_sub(first.offset)))
        })
    }

    /// The program text of the file that is mapped at an address or stands nearest before it: the variables of a
    /// program without contents follow it, and are no part of its file.
    pub fn text_before(&self, address: u64) -> Option<(&Mapping, &MappedFile)> {
        let after = self.mappings.partition_point(|it| it.start <= address);
        let path = &self.mappings[..after].last()?.path;
        let mut mappings = self.mappings.iter();
        let text = mappings.find(|it| it.is_executable && it.path == *path)?;
        Some((text, self.files.get(path)?))
    }
}

/// The mappings of files, by address. Lines that are not understood are left out, and files that were
/// deleted: another one may stand in their place.
fn parse(text: &str) -> Vec<Mapping> {
    let mut paths: HashMap<&str, Arc<str>> = HashMap::new();
    let mut mappings: Vec<Mapping> = text
        .lines()
        .filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let (permissions, rest) = rest.split_once(' ')?;
            let (offset, rest) = rest.split_once(' ')?;
            let (_device, rest) = rest.split_once(' ')?;
            let (_inode, path) = rest.split_once(' ')?;
            let path = path.trim_start();
            if !path.starts_with('/') || path.ends_with(" (deleted)") {
                return None;
            }
            let path = paths.entry(path).or_insert_with(|| path.into());
            let start = u64::from_str_radix(start, 16).ok()?;
            Some(Mapping {
                start,
                end: u64::from_str_radix(end, 16)
                    .ok()
                    .filter(|end| *end > start)?,
                offset: u64::from_str_radix(offset, 16).ok()?,
                is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
                path: path.clone(),
            })
        })
        .collect();
    mappings.sort_by_key(|it| it.start);
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c0a00000-55d0c0a01000 r--p 00000000 fe:01 1311 /usr/bin/a program
55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:01 1311 /usr/bin/a program
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]
7f30424ed000-7f3042600000 r-xp 00026000 fe:01 2222                       /usr/lib/libgone.so (deleted)
7f3042700000-7f3042701000 rw-p 00000000 00:00 0 
7ffd0b5dd000-7ffd0b5ff000 rw-p 00000000 00:00 0                          [stack]
7ffd0b600000-7ffd0b602000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn files_stand_at_their_addresses() {
        let found = parse(TEXT);
        assert_eq!(found.len(), 2);
        assert_eq!(&*found[1].path, "/usr/bin/a program");
        assert_eq!((found[1].offset, found[1].is_executable), (0x1000, true));
        let maps = Maps::new(TEXT, Path::new("/"));
        assert_eq!(maps.at(0x55d0_c0a0_1fff).unwrap().offset, 0x1000);
        assert_eq!(maps.at(0x55d0_c0a0_2000), None);
        assert_eq!(maps.at(0x1000), None);
        // There is no such file.
        assert!(maps.text_at(0x55d0_c0a0_1000).is_none());
    }

    #[test]
    fn lines_that_are_cut_are_left_out() {
        for length in 0..TEXT.len() {
            // A path that is cut looks like another one.
            assert!(parse(&TEXT[..length]).len() <= 3);
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "first").unwrap();
        let name = path.to_str().unwrap();
        let found = MappedFile::find(name, Path::new("/")).unwrap();
        assert_eq!(found.path(), Some(path.as_path()));
        let other = folder.path().join("other");
        fs::write(&other, "other").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(found.path(), None);
    }
}
