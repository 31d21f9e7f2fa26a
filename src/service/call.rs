//! A command of the system, with a deadline.

use std::time::Duration;

use tokio::process::Command;

use super::ServiceError;

/// How long a command of the system may take before it counts as not answering.
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs `words` to its end and gives what it printed.
///
/// # Errors
/// It could not be started, did not end in time, or ended with another status than 0.
pub(super) async fn call(words: &[&str]) -> Result<Vec<u8>, ServiceError> {
    let failed = |how: String| ServiceError::Call { command: words.join(" "), how };
    let Some((program, arguments)) = words.split_first() else {
        return Err(failed("names no program".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let ended = match tokio::time::timeout(DEADLINE, command.output()).await {
        Err(_) => return Err(failed(format!("did not end within {} s", DEADLINE.as_secs()))),
        Ok(Err(source)) => return Err(failed(format!("could not be started: {source}"))),
        Ok(Ok(ended)) => ended,
    };
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.trim();
    Err(failed(if said.is_empty() {
        format!("ended with {}", ended.status)
    } else {
        format!("ended with {}: {said}", ended.status)
    }))
}
