//! The samples of one role: bounded, and evenly spread over the trial.

use std::collections::BTreeMap;

use crate::capture::{Captured, Python, Sample};

/// Most samples that are kept; if there are more, every second one is dropped.
const KEPT_MAX: usize = 1024;

/// Samples of the waits of a role's threads, and what was not sampled.
#[derive(Debug, Default)]
pub struct Samples {
    kept: BTreeMap<u64, Sample>,
    /// Only samples whose number is a multiple of it are kept; 0 is as 1.
    stride: u64,
    pub torn: u64,
    pub skipped: u64,
    pub refusal: Option<String>,
}

impl Samples {
    /// Adds what an attempt to sample a thread gave.
    pub fn add(&mut self, captured: Captured) {
        match captured {
            Captured::Wait(sample) => self.keep(sample),
            Captured::SameWait(number) => {
                // One that was dropped stays so, with all its readings.
                if let Some(sample) = self.kept.get_mut(&number) {
                    sample.repeated += 1;
                }
            }
            Captured::Torn => self.torn += 1,
            Captured::Skipped => self.skipped += 1,
            Captured::Refused(reason) => {
                self.refusal.get_or_insert(reason);
            }
        }
    }

    fn keep(&mut self, sample: Sample) {
        if !sample.number.is_multiple_of(self.stride.max(1)) {
            return;
        }
        if let Python::Unknown(reason) = &sample.python {
            self.refusal.get_or_insert_with(|| reason.clone());
        }
        self.kept.insert(sample.number, sample);
        if self.kept.len() > KEPT_MAX {
            self.stride = 2 * self.stride.max(1);
            let stride = self.stride;
            self.kept.retain(|number, _| number.is_multiple_of(stride));
        }
    }

    /// The samples, in the order in which they were taken.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.kept.values()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.torn == 0 && self.skipped == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64) -> Captured {
        Captured::Wait(Sample {
            number,
            ..Sample::default()
        })
    }

    #[test]
    fn a_wait_that_lasts_counts_again() {
        let mut samples = Samples::default();
        samples.add(sample(0));
        samples.add(Captured::SameWait(0));
        samples.add(Captured::SameWait(7));
        samples.add(Captured::Torn);
        let readings: Vec<_> = samples.iter().map(|it| it.repeated).collect();
        assert_eq!((readings, samples.torn), (vec![1], 1));
    }

    #[test]
    fn of_many_samples_every_second_one_is_kept() {
        let mut samples = Samples::default();
        let count = 5 * KEPT_MAX as u64;
        (0..count).for_each(|number| samples.add(sample(number)));
        let kept: Vec<_> = samples.iter().map(|it| it.number).collect();
        assert!((KEPT_MAX / 2..=KEPT_MAX).contains(&kept.len()));
        assert!(kept.windows(2).all(|it| it[1] - it[0] == 8), "{kept:?}");
        assert!(kept.last().unwrap() + 8 >= count);
    }
}
