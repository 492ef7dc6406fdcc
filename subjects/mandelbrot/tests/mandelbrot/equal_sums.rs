//! The pixel sum is the same for every setting, and is the pinned one.

use concurve_mandelbrot::cut::Grain;
use concurve_mandelbrot::error::Error;
use concurve_mandelbrot::handout::Sync;
use concurve_mandelbrot::image::Image;
use concurve_mandelbrot::kernel::{Path, escape_time};
use concurve_mandelbrot::location::Location;
use concurve_mandelbrot::view::{Point, View};
use concurve_mandelbrot::workers::{self, Computation, ComputeOptions, Observer};
use proptest::prelude::*;

const SYNCS: [Sync; 4] = [Sync::None, Sync::Method, Sync::Object, Sync::Cas];

/// Keeps the computations that end.
#[derive(Default)]
struct Record(Vec<Computation>);

impl Observer for Record {
    fn begin(&mut self, _begin_ns: u64) -> Result<(), Error> {
        Ok(())
    }

    fn end(&mut self, computation: &Computation) -> Result<(), Error> {
        self.0.push(computation.clone());
        Ok(())
    }
}

fn view(width: u32, height: u32, iterations: u32) -> View {
    View::new(&Location::built_in(), width, height, iterations)
}

fn compute(view: View, options: ComputeOptions, repeat: u32) -> (Vec<Computation>, Image) {
    let image = Image::new(view.width, view.height);
    let mut record = Record::default();
    workers::compute(view, options, repeat, &image, &mut record).unwrap();
    (record.0, image)
}

/// Iteration counts by the plain function, pixel by pixel.
fn expected(view: View) -> Vec<u32> {
    let lines = 0..view.height;
    lines
        .flat_map(|y| (0..view.width).map(move |x| view.point(x, y)))
        .map(|point| escape_time(point.re, point.im, view.iterations))
        .collect()
}

#[test]
fn every_setting_gives_the_same_picture() {
    let view = view(53, 37, 300);
    let expected = expected(view);
    let sum: u64 = expected.iter().copied().map(u64::from).sum();
    for path in Path::available() {
        for sync in SYNCS {
            for grain in [Grain::Pixel, Grain::Line, Grain::Tile(8)] {
                for threads in [1, 2, 3, 40] {
                    let options = ComputeOptions {
                        threads,
                        sync,
                        grain,
                        path,
                    };
                    let (computations, image) = compute(view, options, 2);
                    assert_eq!(computations.len(), 2, "{options:?}");
                    for computation in computations {
                        assert_eq!(computation.pixel_sum, sum, "{options:?}");
                        assert_eq!(computation.pixels, view.pixels(), "{options:?}");
                        assert_eq!(computation.workers.len(), threads, "{options:?}");
                    }
                    assert!(image.counts().eq(expected.iter().copied()), "{options:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_region_gives_the_same_picture_with_every_setting(
        re in -2.2..1.2, im in -1.4..1.4, span in 1e-9..3.0, iterations in 1..700_u32,
        width in 1..30_u32, height in 1..20_u32, threads in 1..9_usize, tile in 1..12_u32,
        sync in proptest::sample::select(SYNCS.to_vec()),
    ) {
        let location = Location {
            x_min: re, x_max: re + span, y_min: im, y_max: im + span, ..Location::built_in()
        };
        let view = View::new(&location, width, height, iterations);
        let expected = expected(view);
        for path in Path::available() {
            let options = ComputeOptions { threads, sync, grain: Grain::Tile(tile), path };
            let (_, image) = compute(view, options, 1);
            prop_assert!(image.counts().eq(expected.iter().copied()), "{}", path.name());
        }
    }
}

#[test]
fn every_path_treats_edge_cases_alike() {
    // Exactly on the circle, outside at once, beyond the range of f64, more points than lanes.
    let cases = [
        (0.0, 0.0, 70),
        (-2.0, 0.0, 70),
        (1.0, 0.0, 3),
        (3.0, 0.0, 1),
        (1e300, -1e300, 1),
    ];
    let points = || cases.iter().cycle().take(73).enumerate();
    for path in Path::available() {
        let image = Image::new(73, 1);
        let sum = path.compute(
            points().map(|(index, (re, im, _))| Point {
                index,
                re: *re,
                im: *im,
            }),
            70,
            &image,
        );
        let expected = points().map(|(_, (_, _, count))| *count);
        assert!(image.counts().eq(expected), "{}", path.name());
        assert_eq!(sum, image.pixel_sum(), "{}", path.name());
    }
}

#[test]
fn the_full_picture_has_the_pinned_sum() {
    let pinned: toml::Table = include_str!("../../data/benchmark-sums.toml")
        .parse()
        .unwrap();
    let options = ComputeOptions {
        threads: 2,
        sync: Sync::Cas,
        grain: Grain::Line,
        path: Path::best(true),
    };
    // Deeper ones take too long in a debug build; benches/mandelbrot compares one of them with C.
    let (computations, image) = compute(view(1016, 718, 64), options, 1);
    let sum = pinned["sum_64"].as_integer().unwrap() as u64;
    assert_eq!(computations[0].pixel_sum, sum);
    assert_eq!(image.pixel_sum(), sum);
}

#[test]
fn workers_are_accounted_for() {
    let options = ComputeOptions {
        threads: 3,
        sync: Sync::None,
        grain: Grain::Line,
        path: Path::best(false),
    };
    let (computations, _) = compute(view(20, 6, 50), options, 1);
    let computation = &computations[0];
    let mut names: Vec<_> = computation
        .workers
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["Thread-1", "Thread-2", "Thread-3"]);
    assert!(computation.workers.iter().all(|worker| worker.pixels == 40));
    assert!(
        computation
            .workers
            .iter()
            .all(|w| w.begin_ns >= computation.begin_ns)
    );
    assert!(
        computation
            .workers
            .iter()
            .all(|w| w.end_ns <= computation.end_ns)
    );
    assert!(computation.workers.is_sorted_by_key(|worker| worker.end_ns));
}
