//! Random numbers that are the same for the same seed.

/// SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014):
/// neighbouring seeds give unrelated numbers.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that no earlier run had, for searches that are to find something new.
    pub fn fresh_seed() -> u64 {
        let mut draw = Self(concurve_clock::realtime_ns() ^ u64::from(std::process::id()) << 40);
        // Short enough to be typed.
        draw.number() >> 24
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() >> 16) as usize % end.max(1)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of some; they are not empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn byte(&mut self) -> u8 {
        (self.number() >> 24) as u8
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_publication() {
        // Of the reference implementation, https://prng.di.unimi.it/splitmix64.c, with seed 1234567.
        let mut draw = Draw::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| draw.number()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(first, expected);
    }

    #[test]
    fn every_number_below_the_end_is_drawn() {
        let mut draw = Draw::new(0);
        let mut seen = [false; 7];
        (0..1000).for_each(|_| seen[draw.below(7)] = true);
        assert_eq!(seen, [true; 7]);
        assert_eq!(draw.below(0), 0);
    }
}
