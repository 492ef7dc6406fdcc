//! This machine's `/proc`, and a made one.

use std::os::fd::AsRawFd;

use super::*;

#[test]
fn reads_itself() {
    let proc_fs = ProcFs::default();
    let own = std::process::id();
    assert_eq!(proc_fs.stat(own).unwrap().pid, own);
    assert!(proc_fs.status(own).unwrap().cpus_allowed.is_some());
    assert!(proc_fs.threads(own).unwrap().contains(&own));
    assert!(proc_fs.open_schedstat(own, own).unwrap().read().is_some());
    assert!(proc_fs.open_last_pid().unwrap().read().is_some());
    assert!(!proc_fs.cpus_online().unwrap().is_empty());
}

#[test]
fn threads_of_the_kernel_are_those_of_process_2_without_a_parent() {
    let root = std::env::temp_dir().join(format!("concurve-kernel-{}", std::process::id()));
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let stat = |parent: u32| {
        let zeros = "0 ".repeat(48);
        format!("2 (kthreadd) S {parent} {zeros}")
    };
    write("2/stat", &stat(0));
    write("2/task/2/children", "7 9");
    write("7/task/7/schedstat", "1500 3 4");
    write("9/task/9/schedstat", "20 3 4");
    let proc_fs = ProcFs::new(&root);
    assert_eq!(
        proc_fs.kernel_threads(),
        BTreeMap::from([(7, 1500), (9, 20)])
    );
    // In a container it is somebody's process.
    write("2/stat", &stat(1));
    assert!(proc_fs.kernel_threads().is_empty());
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn tells_descriptors_apart() {
    let proc_fs = ProcFs::default();
    let kind = |file: &dyn AsRawFd| {
        let number = file.as_raw_fd() as u32;
        proc_fs.descriptor_kind(std::process::id(), number)
    };
    let (reader, _writer) = crate::pipe::open().unwrap();
    assert_eq!(kind(&reader), Some(Kind::Pipe));
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(kind(&socket), Some(Kind::Network));
    let executable = File::open(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(kind(&executable), Some(Kind::Disk));
    assert_eq!(kind(&File::open("/dev/null").unwrap()), Some(Kind::Other));
    assert_eq!(proc_fs.descriptor_kind(std::process::id(), 999_999), None);
}

#[test]
fn a_missing_process_is_an_error_that_names_the_file() {
    let error = ProcFs::new("/nowhere").stat(1).unwrap_err();
    assert!(error.to_string().contains("/nowhere/1/stat"), "{error}");
}
