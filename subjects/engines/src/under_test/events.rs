//! What a test reads of the engines, one line an event on standard error.

use concurve_engines::Event;

pub fn print(event: &Event) {
    match event {
        Event::Ready { generation } => eprintln!("ready {generation}"),
        Event::Replaced { engine, why } => eprintln!("replaced {engine}: {why}"),
        Event::Lost { why } => eprintln!("lost: {why}"),
        Event::Stopped { why, .. } => eprintln!("stopped: {why}"),
    }
}
