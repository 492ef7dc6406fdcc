use std::process::ExitCode;

fn main() -> ExitCode {
    concurve_perturb::main()
}
