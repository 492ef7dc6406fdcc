//! What a scheduler keeps for each process: its queue, and its think time between requests.

use crate::request::{ProcessId, Request};
use crate::time::Time;

/// A value for each process, created on first use. Processes are numbered from 0.
#[derive(Debug, Default)]
pub struct PerProcess<T> {
    entries: Vec<T>,
}

impl<T: Default> PerProcess<T> {
    pub fn of(&mut self, process: ProcessId) -> &mut T {
        let index = process as usize;
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, T::default);
        }
        &mut self.entries[index]
    }
}

/// Which queue a request goes to: that of its process if it is synchronous, else a common one.
#[derive(Debug, Default)]
pub struct QueueIndex {
    of_process: PerProcess<Option<usize>>,
    common: Option<usize>,
}

impl QueueIndex {
    /// The index of its queue; `None` if there is no such queue yet.
    pub fn of(&mut self, request: &Request) -> &mut Option<usize> {
        if request.sync {
            self.of_process.of(request.process)
        } else {
            &mut self.common
        }
    }
}

/// A decaying mean; both the sum and the weight decay, so that it is unbiased from the first
/// sample on.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecayingMean {
    weight: f64,
    total: f64,
}

impl DecayingMean {
    pub fn add(&mut self, sample: f64) {
        self.weight = (7.0 * self.weight + 1.0) / 8.0;
        self.total = (7.0 * self.total + sample) / 8.0;
    }

    /// How much the samples weigh: 0 without any, towards 1 with many.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// `None` without a sample.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.total / self.weight)
    }
}

/// The think time of one process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThinkTime {
    mean: DecayingMean,
    last_end: Option<Time>,
}

impl ThinkTime {
    /// A synchronous request of the process has ended.
    pub fn ended(&mut self, now: Time) {
        self.last_end = Some(now);
    }

    /// The process submits again. A time above `most` counts as `most`, since the process was busy
    /// with something else. Returns the sample, if there was an end to count from.
    pub fn asked(&mut self, now: Time, most: Time) -> Option<f64> {
        let sample = (now - self.last_end?).min(most) as f64;
        self.mean.add(sample);
        Some(sample)
    }

    /// Weight and value of the mean; `None` as long as nothing is known.
    pub fn mean(&self) -> Option<(f64, f64)> {
        self.mean.mean().map(|it| (self.mean.weight(), it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_unbiased_from_the_first_sample_on_and_forgets() {
        let mut mean = DecayingMean::default();
        assert_eq!(mean.mean(), None);
        mean.add(8.0);
        assert_eq!(mean.mean(), Some(8.0));
        (0..100).for_each(|_| mean.add(2.0));
        assert!((mean.mean().unwrap() - 2.0).abs() < 1e-4);
    }
}
