//! A store of files: each thread appends records to a file of its own, and each of them is on the disk
//! before the next one is made.
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::thread;

const RECORDS: usize = 240;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads: usize = arguments.next().map_or(1, |it| it.parse().unwrap());
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let writers: Vec<_> = (0..threads)
        .map(|index| {
            let path = folder.join(format!("journal-{index}"));
            thread::spawn(move || {
                let mut journal =
                    OpenOptions::new().create(true).append(true).open(&path).unwrap();
                for record in 0..RECORDS / threads {
                    let line = format!("{record:08} {}\n", "x".repeat(400));
                    journal.write_all(line.as_bytes()).unwrap();
                    journal.sync_data().unwrap();
                }
                fs::remove_file(&path).unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
}
