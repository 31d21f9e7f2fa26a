//! The system calls of processes, by strace.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use super::proc::Process;
use super::run::Running;
use super::{DEADLINE, Home, wait, wait_until};

/// The system calls that `watched` finish within `span`; the one each thread sleeps in is not among them.
pub(crate) fn calls(home: &Home, watched: &[Process], span: Duration) -> Vec<String> {
    let trace = home.root().join("trace");
    let _ = fs::remove_file(&trace);
    let mut command = home.command("strace");
    command.args(["-f", "-qq", "-o"]).arg(&trace);
    for process in watched {
        command.args(["-p", &process.pid.to_string()]);
    }
    let mut strace = Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("strace to be attached", DEADLINE, || {
        let traced = |process: &Process| {
            let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
        };
        watched.iter().all(traced).then_some(())
    });
    let tracer = strace.process();
    wait::stays("strace runs", span, || tracer.alive());
    tracer.signal(Signal::INT);
    strace.join(DEADLINE);
    let text = fs::read_to_string(&trace).unwrap_or_default();
    // a call that is only slept in has no result before strace lets go
    text.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect()
}
