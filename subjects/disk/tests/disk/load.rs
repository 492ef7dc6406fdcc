//! The load of document 003, small.

use concurve_disk::account::Account;
use concurve_disk::disk::Model;
use concurve_disk::machine::Layout;
use concurve_disk::scheduler::kind::{Kind, Tuned};
use concurve_disk::workload::load::{Assumptions, Load, Writing, processes};
use concurve_disk::{Machine, Simulation};

fn machine(scheduler: Kind) -> Machine {
    Machine {
        disk: Model::scsi_36gb_15k(),
        disks: 3,
        layout: Layout::Linear,
        scheduler,
        tuned: Tuned::default(),
        before: 0,
    }
}

fn account(scheduler: Kind, load: &Load, assumptions: &Assumptions) -> Account {
    let machine = machine(scheduler);
    let processes = processes(load, assumptions, machine.sectors()).unwrap();
    Simulation::new(&machine, processes).run()
}

/// Loaders come first among the processes, then a writer for each data volume, write-back and the
/// closing jobs.
fn written(account: &Account, load: &Load) -> u64 {
    let loaders = load.loaders as usize;
    let writers = &account.shares[loaders..=loaders + load.volumes as usize];
    writers.iter().map(|it| it.bytes).sum()
}

#[test]
fn everything_that_is_loaded_is_written_in_each_way_and_by_each_scheduler() {
    let load = Load::of_document(0.002, 3);
    for writing in [Writing::Cached, Writing::Direct] {
        let assumptions = Assumptions {
            writing,
            scattered_pages: 0,
            ..Assumptions::default()
        };
        for scheduler in [
            Kind::Noop,
            Kind::Deadline,
            Kind::Anticipatory,
            Kind::Cfq,
            Kind::Bfq,
        ] {
            let account = account(scheduler, &load, &assumptions);
            let share = written(&account, &load) as f64 / load.bytes as f64;
            // Tables end with a part of a page.
            assert!(
                (1.0..1.05).contains(&share),
                "{scheduler:?}, {writing:?}: {share}"
            );
            assert!(account.shares.iter().all(|it| it.end > 0), "all have ended");
        }
    }
}

#[test]
fn more_scattered_pages_and_slower_seeks_take_longer() {
    let load = Load::of_document(0.002, 3);
    let seconds = |scattered_pages| {
        let assumptions = Assumptions {
            scattered_pages,
            cpu_per_megabyte: 0,
            ..Assumptions::default()
        };
        account(Kind::Deadline, &load, &assumptions).end
    };
    assert!(seconds(100) > 2 * seconds(10));
}

#[test]
fn five_loaders_overlap_computation_and_io() {
    let assumptions = Assumptions {
        cpu_per_megabyte: 1_000_000_000,
        ..Assumptions::default()
    };
    let seconds = |loaders| {
        let load = Load {
            loaders,
            ..Load::of_document(0.002, 3)
        };
        account(Kind::Deadline, &load, &assumptions).end as f64
    };
    let factor = seconds(1) / seconds(5);
    // The biggest file takes its own time, so it is not five.
    assert!((2.0..5.0).contains(&factor), "{factor}");
}

#[test]
fn a_load_that_does_not_fit_is_refused_with_both_sizes() {
    let machine = Machine {
        disks: 1,
        ..machine(Kind::Noop)
    };
    let load = Load::of_document(0.01, 1);
    let refused = processes(&load, &Assumptions::default(), machine.sectors());
    let text = refused.err().expect("one disk is too small").to_string();
    assert!(text.contains("GB") && text.contains("--disks"), "{text}");
}
