//! Edges of phases, in order and out of it.

use super::*;

fn line(phase: &str, edge: Edge) -> PhaseLine {
    PhaseLine {
        phase: phase.into(),
        edge,
        at_ns: None,
    }
}

fn reading(at_ns: u64, cpu_ns: u64) -> Reading {
    Reading {
        at_ns,
        cpu_ns: Some(cpu_ns),
        ..Reading::default()
    }
}

#[test]
fn repeated_and_nested_phases_are_entries_of_their_own() {
    let mut phases = Phases::default();
    phases
        .edge(&line("a", Edge::Begin), reading(10, 1))
        .unwrap();
    phases
        .edge(&line("b", Edge::Begin), reading(20, 2))
        .unwrap();
    phases.edge(&line("a", Edge::End), reading(30, 4)).unwrap();
    phases
        .edge(&line("a", Edge::Begin), reading(40, 5))
        .unwrap();
    phases.edge(&line("b", Edge::End), reading(50, 7)).unwrap();
    phases.end(&reading(60, 9));
    let records = phases.finish(5, |_, _| None);
    let found: Vec<_> = records
        .iter()
        .map(|phase| {
            (
                phase.name.as_str(),
                phase.begin_ns,
                phase.wall_ns,
                phase.usage.cpu_ns,
                phase.open,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a", 5, 20, Some(3), false),
            ("b", 15, 30, Some(5), false),
            ("a", 35, 20, Some(4), true),
        ]
    );
}

#[test]
fn how_late_the_probes_were_read_is_told() {
    let mut phases = Phases::default();
    for (edge, at_ns, read_ns) in [(Edge::Begin, 100, 107), (Edge::End, 200, 203)] {
        let mut line = line("a", edge);
        line.at_ns = Some(at_ns);
        let mut reading = reading(read_ns, 1);
        reading.read_ns = read_ns;
        phases.edge(&line, reading).unwrap();
    }
    assert_eq!(phases.finish(0, |_, _| None)[0].late_ns, Some(7));
}

#[test]
fn a_client_marks_a_phase_of_its_server() {
    let mut phases = Phases::default();
    let (begin, end) = (line("a", Edge::Begin), line("a", Edge::End));
    phases.edge_of("load-1", &begin, reading(10, 1));
    phases.edge_of("load-2", &begin, reading(20, 2));
    phases.edge_of("load-1", &end, reading(30, 4));
    phases.edge_of("load-2", &end, reading(40, 8));
    let records = phases.finish(0, |_, _| None);
    assert_eq!(records.len(), 1, "the first of those that overlap");
    assert_eq!(records[0].marked_by.as_deref(), Some("load-1"));
    assert_eq!((records[0].wall_ns, records[0].usage.cpu_ns), (20, Some(3)));
}

#[test]
fn a_phase_of_its_own_stands_before_a_clients() {
    let mut phases = Phases::default();
    let (begin, end) = (line("a", Edge::Begin), line("a", Edge::End));
    phases.edge(&begin, reading(10, 1)).unwrap();
    phases.edge_of("load", &begin, reading(20, 2));
    phases.edge_of("load", &line("b", Edge::Begin), reading(20, 2));
    phases.edge_of("load", &end, reading(30, 4));
    phases.edge(&end, reading(40, 8)).unwrap();
    phases.end(&reading(50, 9));
    let records = phases.finish(0, |_, _| None);
    let found: Vec<_> = records
        .iter()
        .map(|it| (it.name.as_str(), it.marked_by.as_deref(), it.wall_ns))
        .collect();
    assert_eq!(found, [("a", None, 30), ("b", Some("load"), 30)]);
}

#[test]
fn edges_that_make_no_sense() {
    let mut phases = Phases::default();
    assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
    phases.edge(&line("a", Edge::Begin), reading(2, 0)).unwrap();
    assert!(phases.edge(&line("a", Edge::Begin), reading(3, 0)).is_err());
    assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
}

#[test]
fn a_missing_source_stays_missing() {
    let mut phases = Phases::default();
    phases.edge(&line("a", Edge::Begin), reading(1, 0)).unwrap();
    let mut end = Reading {
        at_ns: 2,
        ..Reading::default()
    };
    end.absent.insert("cpu_ns".into(), "gone".into());
    phases.edge(&line("a", Edge::End), end).unwrap();
    let usage = &phases.finish(0, |_, _| None)[0].usage;
    assert_eq!(usage.cpu_ns, None);
    assert_eq!(usage.absent["cpu_ns"], "gone");
}
