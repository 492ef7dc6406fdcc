//! A bounded number of intervals of a trial, each with what is known of it.

/// What is known of an interval, and can be known of two that become one.
pub trait Joined {
    /// Adds what is known of the next interval.
    fn join(&mut self, next: Self);
}

/// Intervals that follow each other. Once there are as many as may be, each two become one, and the next
/// ones are to be twice as long.
#[derive(Debug)]
pub struct Intervals<T> {
    most: usize,
    shortest_ns: u64,
    ended: Vec<(u64, T)>,
}

impl<T: Joined> Intervals<T> {
    /// None yet; the first ones are to be so long.
    pub fn new(most: usize, shortest_ns: u64) -> Self {
        Self {
            most,
            shortest_ns,
            ended: Vec::new(),
        }
    }

    /// How long the present one is to be, at least.
    pub fn shortest_ns(&self) -> u64 {
        self.shortest_ns
    }

    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// An interval ends now, of which this is known.
    pub fn end(&mut self, now: u64, known: T) {
        self.ended.push((now, known));
        if self.ended.len() == self.most {
            (0..self.most / 2).for_each(|index| self.join(index));
            self.shortest_ns = self.shortest_ns.saturating_mul(2);
        }
    }

    /// Makes one interval of the last two, if there are two.
    pub fn join_last(&mut self) {
        if let Some(index) = self.ended.len().checked_sub(2) {
            self.join(index);
        }
    }

    /// The end of each interval, and what is known of it.
    pub fn into_parts(self) -> (Vec<u64>, Vec<T>) {
        self.ended.into_iter().unzip()
    }

    /// Makes one interval of this one and the next.
    fn join(&mut self, index: usize) {
        let (end_ns, next) = self.ended.remove(index + 1);
        let (end, known) = &mut self.ended[index];
        *end = end_ns;
        known.join(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Joined for u64 {
        fn join(&mut self, next: Self) {
            *self += next;
        }
    }

    #[test]
    fn intervals_are_bounded_and_lose_nothing() {
        for count in [1, 7, 8, 9, 1000] {
            let mut intervals = Intervals::new(8, 10);
            (1..=count).for_each(|number| intervals.end(number * 10, number));
            assert_eq!(intervals.shortest_ns() > 10, count >= 8);
            let (ends, known) = intervals.into_parts();
            assert!(ends.len() < 8 && ends.len() == known.len());
            assert!(ends.is_sorted_by(|one, next| one < next));
            assert_eq!(ends.last(), Some(&(count * 10)));
            assert_eq!(known.iter().sum::<u64>(), count * (count + 1) / 2);
        }
    }

    #[test]
    fn a_last_one_becomes_part_of_the_one_before() {
        let mut intervals = Intervals::new(8, 10);
        intervals.end(10, 1);
        intervals.join_last();
        intervals.end(13, 2);
        intervals.join_last();
        assert_eq!(intervals.into_parts(), (vec![13], vec![3]));
    }
}
