//! Export files and their tables: of very unequal sizes, as in exports of such systems. The program
//! that loads real databases draws the same ones.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, LogNormal};

use super::plan::Load;

/// The tables of one file, in bytes of the database.
pub type File = Vec<u64>;

/// σ of the logarithms: of 44,000 tables, 1 % then hold about 60 % of the bytes.
const TABLE_SPREAD: f64 = 2.6;
const FILE_SPREAD: f64 = 1.0;

/// A table is a page at least.
const TABLE_MIN: u64 = 8192;

/// The files of a load, the biggest first. Tables fall to files by the files' sizes.
pub fn files(load: &Load) -> Vec<File> {
    let mut random = SmallRng::seed_from_u64(load.seed);
    let weights = draws(load.files, FILE_SPREAD, &mut random);
    let sizes = draws(load.tables, TABLE_SPREAD, &mut random);
    let per_weight = load.bytes as f64 / sizes.iter().sum::<f64>();
    let mut files: Vec<File> = vec![Vec::new(); load.files as usize];
    let total: f64 = weights.iter().sum();
    let mut owed = vec![0.0; weights.len()];
    for size in sizes {
        // The file that lags most behind its share of the tables gets the next one.
        for (owed, weight) in owed.iter_mut().zip(&weights) {
            *owed += weight / total;
        }
        let next = (0..owed.len()).max_by(|&a, &b| owed[a].total_cmp(&owed[b]));
        let next = next.expect("there are files");
        owed[next] -= 1.0;
        files[next].push(((size * per_weight) as u64).max(TABLE_MIN));
    }
    files.sort_by_key(|it| std::cmp::Reverse(it.iter().sum::<u64>()));
    files
}

fn draws(count: u32, spread: f64, random: &mut SmallRng) -> Vec<f64> {
    let sizes = LogNormal::new(0.0, spread).expect("the spread is finite");
    (0..count).map(|_| sizes.sample(random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_all_tables_and_bytes_and_are_unequal() {
        let load = Load::of_document(0.1, 1);
        let files = files(&load);
        assert_eq!(files.len(), 34);
        assert_eq!(files.iter().map(Vec::len).sum::<usize>(), 4400);
        let sums: Vec<u64> = files.iter().map(|it| it.iter().sum()).collect();
        let total: u64 = sums.iter().sum();
        assert!((total as f64 / load.bytes as f64 - 1.0).abs() < 0.01);
        assert!(sums.is_sorted_by(|a, b| a >= b));
        assert!(sums[0] > 5 * sums[20]);
    }
}
