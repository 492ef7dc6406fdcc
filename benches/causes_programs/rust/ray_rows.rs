//! A small ray tracer: the workers take rows of a picture off a shared counter (320 rows of more than
//! a millisecond each) and keep what they see. The scene is only read, the rows are many and
//! short against the whole, and nothing else is shared: two workers are twice as fast as one. Four
//! and eight workers are no faster than two, since there are two CPUs: then these limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const WIDTH: usize = 480;
const HEIGHT: usize = 320;
const SAMPLES: u64 = 32;

type Vector = [f64; 3];

struct Sphere {
    centre: Vector,
    radius: f64,
    shine: f64,
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn along(from: Vector, direction: Vector, distance: f64) -> Vector {
    [
        from[0] + direction[0] * distance,
        from[1] + direction[1] * distance,
        from[2] + direction[2] * distance,
    ]
}

fn unit(it: Vector) -> Vector {
    let length = dot(it, it).sqrt();
    [it[0] / length, it[1] / length, it[2] / length]
}

fn hit(sphere: &Sphere, from: Vector, direction: Vector) -> Option<f64> {
    let to = along(from, sphere.centre, -1.0);
    let half = dot(to, direction);
    let inside = half * half - dot(to, to) + sphere.radius * sphere.radius;
    if inside < 0.0 {
        return None;
    }
    let distance = -half - inside.sqrt();
    if distance > 1e-4 {
        Some(distance)
    } else {
        None
    }
}

fn trace(scene: &[Sphere], mut from: Vector, mut direction: Vector) -> f64 {
    let mut light = 0.0;
    let mut share = 1.0;
    for _ in 0..4 {
        let mut nearest: Option<(f64, &Sphere)> = None;
        for sphere in scene {
            if let Some(distance) = hit(sphere, from, direction) {
                if nearest.map_or(true, |(best, _)| distance < best) {
                    nearest = Some((distance, sphere));
                }
            }
        }
        match nearest {
            None => return light + share * (0.5 + 0.5 * direction[1]),
            Some((distance, sphere)) => {
                from = along(from, direction, distance);
                let normal = unit(along(from, sphere.centre, -1.0));
                light += share * (1.0 - sphere.shine) * normal[1].max(0.0);
                share *= sphere.shine;
                direction = unit(along(direction, normal, -2.0 * dot(direction, normal)));
            }
        }
    }
    light
}

fn row_of(scene: &[Sphere], row: usize) -> f64 {
    let mut state = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut total = 0.0;
    for column in 0..WIDTH {
        for _ in 0..SAMPLES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let dx = (state >> 40) as f64 / (1u64 << 24) as f64;
            let dy = (state & 0xff_ffff) as f64 / (1u64 << 24) as f64;
            let x = (column as f64 + dx) / HEIGHT as f64 - 0.75;
            let y = 0.5 - (row as f64 + dy) / HEIGHT as f64;
            total += trace(scene, [0.0, 0.0, -3.0], unit([x, y, 1.0]));
        }
    }
    total
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let scene: Vec<Sphere> = (0..9i32)
        .map(|i| Sphere {
            centre: [f64::from(i % 3) * 1.2 - 1.2, f64::from(i / 3) - 1.0, f64::from(i * 5 % 4) * 0.3],
            radius: 0.55,
            shine: 0.6,
        })
        .collect();
    let next = AtomicUsize::new(0);
    let mut light = 0.0;
    thread::scope(|scope| {
        let (scene, next) = (&scene, &next);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(move || {
                    let mut light = 0.0;
                    loop {
                        let row = next.fetch_add(1, Ordering::Relaxed);
                        if row >= HEIGHT {
                            return light;
                        }
                        light += row_of(scene, row);
                    }
                })
            })
            .collect();
        for worker in workers {
            light += worker.join().unwrap();
        }
    });
    println!("{:.3}", light / (WIDTH * HEIGHT) as f64 / SAMPLES as f64);
}
