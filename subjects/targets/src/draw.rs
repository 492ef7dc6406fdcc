//! Pseudo-random numbers from a seed.

/// A uniformly distributed number in (0, 1].
pub fn uniform(state: &mut u64) -> f64 {
    let bits = split_mix_64(state) >> 11;
    (bits + 1) as f64 / (1u64 << 53) as f64
}

/// SplitMix64 (Steele, Lea and Flood 2014): neighbouring seeds give unrelated numbers.
pub fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps a number to a value of the exponential distribution with mean 1, always the same one.
pub fn exponential_of(number: u64) -> f64 {
    let mut state = number;
    -uniform(&mut state).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_its_published_sequence() {
        let mut state = 1_234_567;
        assert_eq!(split_mix_64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix_64(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn exponential_draws_have_mean_1_and_spread_1() {
        const DRAWS: u64 = 100_000;
        let draws: Vec<f64> = (0..DRAWS).map(exponential_of).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
