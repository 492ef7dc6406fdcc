//! A bit map of the units in use.

use crate::memory::sizes::UNIT;

/// The largest number of units of an arena: 64 GiB.
pub const UNITS_MAX: usize = 1 << 20;

/// Allocates by first fit. A bit is 1 while its unit is in use, and above `total`.
#[repr(C)]
pub struct Units {
    total: usize,
    used: usize,
    /// The maximum of `used` so far.
    peak: usize,
    /// No unit in words before this one is free.
    hint: usize,
    words: [u64; UNITS_MAX / 64],
}

impl Units {
    /// Initialises a map of zeros for `total` free units.
    pub fn init(&mut self, total: usize) {
        self.total = total;
        for unit in total..total.next_multiple_of(64) {
            self.words[unit / 64] |= 1 << (unit % 64);
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.used * UNIT
    }

    pub fn peak_bytes(&self) -> usize {
        self.peak * UNIT
    }

    /// The first of `count` units in a row that are free, whose number is a multiple of `align`.
    pub fn take(&mut self, count: usize, align: usize) -> Option<usize> {
        let mut at = self.next_free(self.hint * 64)?;
        self.hint = at / 64;
        loop {
            let begin = at.next_multiple_of(align);
            if begin + count > self.total {
                return None;
            }
            match (begin..begin + count).find(|&unit| self.is_used(unit)) {
                None => {
                    self.mark(begin, count, true);
                    return Some(begin);
                }
                Some(used) => at = self.next_free(used + 1)?,
            }
        }
    }

    /// Takes the units that follow a run, if they are free.
    pub fn take_at(&mut self, begin: usize, count: usize) -> bool {
        let is_free =
            begin + count <= self.total && (begin..begin + count).all(|unit| !self.is_used(unit));
        if is_free {
            self.mark(begin, count, true);
        }
        is_free
    }

    pub fn give_back(&mut self, begin: usize, count: usize) {
        self.mark(begin, count, false);
        self.hint = self.hint.min(begin / 64);
    }

    fn is_used(&self, unit: usize) -> bool {
        self.words[unit / 64] >> (unit % 64) & 1 == 1
    }

    fn next_free(&self, from: usize) -> Option<usize> {
        let (mut word, bit) = (from / 64, from % 64);
        let last = self.total.div_ceil(64);
        if word >= last {
            return None;
        }
        let mut free = !self.words[word] & u64::MAX << bit;
        while free == 0 {
            word += 1;
            if word == last {
                return None;
            }
            free = !self.words[word];
        }
        Some(word * 64 + free.trailing_zeros() as usize)
    }

    fn mark(&mut self, begin: usize, count: usize, is_used: bool) {
        for unit in begin..begin + count {
            let bit = 1 << (unit % 64);
            if is_used {
                self.words[unit / 64] |= bit;
            } else {
                self.words[unit / 64] &= !bit;
            }
        }
        if is_used {
            self.used += count;
            self.peak = self.peak.max(self.used);
        } else {
            self.used -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOTAL: usize = 300;

    fn units() -> Box<Units> {
        let mut units = Box::new(Units {
            total: 0,
            used: 0,
            peak: 0,
            hint: 0,
            words: [0; UNITS_MAX / 64],
        });
        units.init(TOTAL);
        units
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn runs_are_the_first_that_fit_and_never_overlap(
            steps in prop::collection::vec((0..3, 1_usize..20, 0_u32..4, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut units = units();
            let mut model = [false; TOTAL];
            let mut runs: Vec<(usize, usize)> = Vec::new();
            for (step, count, shift, which) in steps {
                let align = 1 << shift;
                let fits = |model: &[bool], at: usize| {
                    at + count <= TOTAL && !model[at..at + count].contains(&true)
                };
                if step == 0 && !runs.is_empty() {
                    let (begin, count) = runs.swap_remove(which.index(runs.len()));
                    units.give_back(begin, count);
                    model[begin..begin + count].fill(false);
                } else if step == 1 && !runs.is_empty() {
                    let at = which.index(runs.len());
                    let end = runs[at].0 + runs[at].1;
                    let expected = fits(&model, end);
                    prop_assert_eq!(units.take_at(end, count), expected);
                    if expected {
                        model[end..end + count].fill(true);
                        runs[at].1 += count;
                    }
                } else {
                    let expected = (0..TOTAL).step_by(align).find(|&at| fits(&model, at));
                    prop_assert_eq!(units.take(count, align), expected);
                    if let Some(begin) = expected {
                        model[begin..begin + count].fill(true);
                        runs.push((begin, count));
                    }
                }
                let used = model.iter().filter(|it| **it).count();
                prop_assert_eq!(units.used_bytes(), used * UNIT);
            }
        }
    }
}
