//! How the key of a request is drawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

/// How keys are drawn from a population.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keys {
    /// All with the same probability.
    Uniform { population: u64 },
    /// The k-th key with a probability proportional to 1/k^exponent.
    Zipf { population: u64, exponent: f64 },
    /// A share of the requests goes to the first few keys, the others to the rest.
    Hot {
        population: u64,
        hot: u64,
        share: f64,
    },
    /// Each in its turn, over all sessions: so many requests ask for each once.
    Each { population: u64 },
    /// Every session has a key of its own.
    Session,
}

impl Keys {
    /// How many keys there are; `None`: one for each session.
    pub fn population(self) -> Option<u64> {
        match self {
            Self::Uniform { population }
            | Self::Zipf { population, .. }
            | Self::Hot { population, .. }
            | Self::Each { population } => Some(population),
            Self::Session => None,
        }
    }
}

/// Why a text does not name a distribution of keys.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "keys {text:?}: {why}; use uniform:100000, zipf:100000:0.99, hot:100000:100:0.9 (100 of the keys get 90 %), each:100000 (one after the other), or session"
)]
pub struct KeysError {
    text: String,
    why: String,
}

impl std::str::FromStr for Keys {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let wrong = |why: &str| KeysError {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let count = |part: &str| {
            let number = part.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| wrong(&format!("{part:?} is not a number of keys above 0")))
        };
        let float = |part: &str| {
            let number = part.parse::<f64>().ok().filter(|it| it.is_finite());
            number.ok_or_else(|| wrong(&format!("{part:?} is no number")))
        };
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["session"] => Ok(Self::Session),
            ["uniform", population] => Ok(Self::Uniform {
                population: count(population)?,
            }),
            ["each", population] => Ok(Self::Each {
                population: count(population)?,
            }),
            ["zipf", population, exponent] => {
                let (population, exponent) = (count(population)?, float(exponent)?);
                if exponent < 0.0 {
                    return Err(wrong("the exponent is below 0"));
                }
                Ok(Self::Zipf {
                    population,
                    exponent,
                })
            }
            ["hot", population, hot, share] => {
                let (population, hot) = (count(population)?, count(hot)?);
                let share = float(share)?;
                if hot >= population {
                    return Err(wrong("there must be more keys than hot ones"));
                }
                if !(0.0..=1.0).contains(&share) {
                    return Err(wrong("the share is not between 0 and 1"));
                }
                Ok(Self::Hot {
                    population,
                    hot,
                    share,
                })
            }
            _ => Err(wrong("not understood")),
        }
    }
}

/// Draws keys for one session.
#[derive(Debug, Clone)]
pub struct KeyPicker {
    keys: Keys,
    zipf: Option<Zipf<f64>>,
    session: u64,
    /// How many were drawn so far by all sessions, of keys that take turns.
    drawn: Arc<AtomicU64>,
}

impl KeyPicker {
    /// `drawn` is shared by the sessions of a load.
    pub fn new(keys: Keys, session: u64, drawn: Arc<AtomicU64>) -> Self {
        let zipf = match keys {
            Keys::Zipf {
                population,
                exponent,
            } => Some(Zipf::new(population as f64, exponent).expect("checked when parsed")),
            _ => None,
        };
        Self {
            keys,
            zipf,
            session,
            drawn,
        }
    }

    /// The number of the next key, from 0.
    pub fn pick(&self, random: &mut SmallRng) -> u64 {
        match self.keys {
            Keys::Uniform { population } => random.random_range(0..population),
            Keys::Zipf { .. } => {
                let zipf = self.zipf.as_ref().expect("made with the picker");
                zipf.sample(random) as u64 - 1
            }
            Keys::Hot {
                population,
                hot,
                share,
            } => match random.random_bool(share) {
                true => random.random_range(0..hot),
                false => random.random_range(hot..population),
            },
            Keys::Each { population } => self.drawn.fetch_add(1, Ordering::Relaxed) % population,
            Keys::Session => self.session,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn counts(keys: &str, draws: u64) -> Vec<u64> {
        let picker = KeyPicker::new(keys.parse().unwrap(), 7, Arc::default());
        let mut random = SmallRng::seed_from_u64(1);
        let mut counts = vec![0; 1000];
        for _ in 0..draws {
            counts[picker.pick(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn uniform_keys_are_all_drawn() {
        let counts = counts("uniform:10", 100_000);
        assert!(counts[..10].iter().all(|it| it.abs_diff(10_000) < 500));
        assert!(counts[10..].iter().all(|it| *it == 0));
    }

    #[test]
    fn zipf_keys_follow_their_law() {
        let counts = counts("zipf:1000:1", 1_000_000);
        let harmonic: f64 = (1..=1000).map(|k| 1.0 / f64::from(k)).sum();
        for k in [1, 2, 10, 100] {
            let expected = 1e6 / harmonic / k as f64;
            assert!((counts[k - 1] as f64 / expected - 1.0).abs() < 0.15, "{k}");
        }
    }

    #[test]
    fn hot_keys_get_their_share() {
        let counts = counts("hot:1000:10:0.9", 100_000);
        let hot: u64 = counts[..10].iter().sum();
        assert!(hot.abs_diff(90_000) < 600);
        assert!(counts[10..].iter().sum::<u64>() == 100_000 - hot);
    }

    #[test]
    fn each_key_has_its_turn_over_all_sessions() {
        let drawn = Arc::default();
        let sessions =
            [3, 8].map(|it| KeyPicker::new("each:5".parse().unwrap(), it, Arc::clone(&drawn)));
        let mut random = SmallRng::seed_from_u64(1);
        let keys: Vec<u64> = (0..10)
            .map(|turn| sessions[usize::from(turn % 3 == 0)].pick(&mut random))
            .collect();
        assert_eq!(keys, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_session_keeps_to_its_key() {
        assert_eq!(counts("session", 10)[7], 10);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("uniform:0", "not a number of keys"),
            ("each:0", "not a number of keys"),
            ("uniform", "not understood"),
            ("zipf:10:-1", "below 0"),
            ("zipf:10:x", "no number"),
            ("hot:10:10:0.5", "more keys than hot"),
            ("hot:10:1:1.5", "between 0 and 1"),
        ] {
            let error = text.parse::<Keys>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
