//! The names of some functions of a file, of which as little is read as they need: a program may have a
//! hundred megabytes.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SegmentFlags, SymbolKind,
};

use crate::elf::{EXECUTABLE, debug_path, demangled, is_better_name};

type Parsed<'a, R> = ElfFile64<'a, LittleEndian, R>;

/// The functions at some places of a file, by these. Those without a symbol are left out.
pub fn functions_at(path: &Path, offsets: &[u64]) -> HashMap<u64, String> {
    named(path, offsets).unwrap_or_default()
}

fn named(path: &Path, offsets: &[u64]) -> Option<HashMap<u64, String>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let parsed = Parsed::parse(&cache).ok()?;
    let mut wanted: Vec<(u64, u64)> = offsets
        .iter()
        .filter_map(|offset| Some((address_of(&parsed, *offset)?, *offset)))
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let addresses: Vec<u64> = wanted.iter().map(|it| it.0).collect();
    let mut found = names(&parsed, &addresses);
    // A stripped program: what it lacks stands in a file of its own.
    if found.iter().any(Option::is_none)
        && let Some(debug) = debug_path(&parsed, path)
        && let Ok(file) = File::open(debug)
    {
        let cache = ReadCache::new(file);
        if let Ok(parsed) = Parsed::parse(&cache) {
            let more = names(&parsed, &addresses);
            found = found.into_iter().zip(more).map(|(a, b)| a.or(b)).collect();
        }
    }
    let places = wanted.iter().map(|it| it.1);
    Some(
        places
            .zip(found)
            .filter_map(|(offset, name)| Some((offset, demangled(&name?))))
            .collect(),
    )
}

/// The address of the program text at a place of the file.
fn address_of<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>, offset: u64) -> Option<u64> {
    parsed.segments().find_map(|segment| {
        let SegmentFlags::Elf { p_flags } = segment.flags() else {
            return None;
        };
        let (begin, bytes) = segment.file_range();
        let inside = offset.checked_sub(begin)?;
        let is_text = p_flags & EXECUTABLE != 0 && inside < bytes;
        is_text.then_some(segment.address().checked_add(inside)?)
    })
}

/// The function that begins nearest before each of some addresses and covers it.
fn names<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>, addresses: &[u64]) -> Vec<Option<String>> {
    let functions = || {
        let all = parsed.symbols().chain(parsed.dynamic_symbols());
        all.filter(|it| it.kind() == SymbolKind::Text && !it.is_undefined() && it.address() != 0)
    };
    // Where the one that covers it begins, and the nearest one, which lasts until the next if it has no length.
    let mut covering = vec![None; addresses.len()];
    let mut nearest: Vec<Option<(u64, bool)>> = vec![None; addresses.len()];
    for symbol in functions() {
        let (begin, bytes) = (symbol.address(), symbol.size());
        let from = addresses.partition_point(|it| *it < begin);
        if let Some(first) = nearest.get_mut(from) {
            *first = (*first).max(Some((begin, bytes == 0)));
        }
        let inside = addresses[from..]
            .iter()
            .take_while(|it| *it - begin < bytes);
        for known in covering[from..].iter_mut().take(inside.count()) {
            *known = (*known).max(Some(begin));
        }
    }
    let mut last = None;
    for (covering, nearest) in covering.iter_mut().zip(nearest) {
        last = last.max(nearest);
        if let Some((begin, true)) = last
            && covering.is_none_or(|it| it < begin)
        {
            *covering = Some(begin);
        }
    }
    let mut best: HashMap<u64, Option<String>> =
        covering.iter().flatten().map(|it| (*it, None)).collect();
    for symbol in functions() {
        if let Some(known) = best.get_mut(&symbol.address())
            && let Ok(name) = symbol.name()
            && !name.is_empty()
            && known.as_deref().is_none_or(|it| is_better_name(name, it))
        {
            *known = Some(name.to_owned());
        }
    }
    let name = |begin: Option<u64>| best.get(&begin?).cloned().flatten();
    covering.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Elf;
    use crate::maps::Maps;

    #[test]
    fn the_names_are_those_that_the_whole_file_gives() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let maps = Maps::new(&text, Path::new("/"));
        let here = functions_at as *const () as u64;
        let (mapping, file) = maps.text_at(here).unwrap();
        let path = file.path().unwrap();
        let elf = Elf::open(path).unwrap();
        let moved_by = elf.moved_by(mapping).unwrap();
        let bytes = mapping.end - mapping.start;
        let inside = (0..200).map(|it| bytes / 200 * it);
        let offsets: Vec<u64> = inside.map(|it| mapping.offset + it).collect();
        let found = functions_at(path, &offsets);
        assert!(found.len() > 100, "{}", found.len());
        for offset in offsets {
            let address = mapping.start + (offset - mapping.offset) - moved_by;
            let expected = elf.function_at(address);
            assert_eq!(found.get(&offset), expected.as_ref(), "{offset:#x}");
        }
    }

    #[test]
    fn what_is_no_program_has_no_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01\0\0\0"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(functions_at(&path, &[0, 1]).is_empty());
        }
        assert!(functions_at(&folder.path().join("none"), &[0]).is_empty());
    }
}
